"""The retention policy that the settings describe."""

from postroom.core.mail.retention import RetentionPolicy
from postroom.settings.sections import RetentionSettings


def retention_policy(retention: RetentionSettings) -> RetentionPolicy:
    return RetentionPolicy(retention.full_days, retention.metadata_days, dict(retention.categories))
