"""The head by which people recognise a message wherever it is shown."""

from dataclasses import dataclass

from postroom.core.views import Untrusted


@dataclass(frozen=True, slots=True)
class MailHead:
    """The sender and the subject of a message. Every shape in which people see a message extends it."""

    sender: Untrusted[str]
    subject: Untrusted[str]
