"""The suppression list: addresses that get no more mail of a tenant, because it bounced, or because they complained."""

from typing import Literal

SuppressionCause = Literal["bounce", "complaint", "person"]
