"""The errors of SMTP delivery. Each carries the reply that recipients are told about.

PostroomError
└── SmtpError
    ├── Unsendable        the mail can go nowhere: its sender is no address, or it cannot be signed
    ├── NoRoute           there is no server to deliver to, now or ever
    ├── HostFailed        this host could not be used; another one may do
    └── ConnectionLost    the connection ended, or its replies did not come in time
"""

from postroom.core.errors import PostroomError
from postroom.core.outbound.replies import Reply


class SmtpError(PostroomError):
    def __init__(self, reply: Reply) -> None:
        super().__init__(str(reply))
        self.reply = reply


class Unsendable(SmtpError):
    """The mail can go nowhere, whatever the destination."""


class NoRoute(SmtpError):
    """There is no server to deliver to: the reply says whether there may be one later."""


class HostFailed(SmtpError):
    """This host does not talk to us, or not as it must."""


class ConnectionLost(SmtpError):
    """The connection ended, or a reply did not come in time, or was none."""
