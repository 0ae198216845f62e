"""One message of a mailbox, in Gmail's response formats."""

import base64
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from postroom_sandbox.mime import Mail
from postroom_sandbox.refusal import invalid

Json = dict[str, Any]

FORMATS = frozenset({"full", "metadata", "minimal", "raw"})


@dataclass
class Message:
    """A message in the mailbox. Only its labels can change."""

    id: str
    thread_id: str
    mail: Mail
    received_at: datetime
    labels: frozenset[str]
    history_id: int

    @property
    def internal_date(self) -> int:
        return int(self.received_at.timestamp() * 1000)

    @property
    def place(self) -> tuple[int, str]:
        """Its position in the order of the mailbox."""
        return self.internal_date, self.id

    def reference(self) -> Json:
        return {"id": self.id, "threadId": self.thread_id}

    def labelled(self) -> Json:
        return {**self.reference(), "labelIds": sorted(self.labels)}

    def as_json(self, format: str = "full", metadata_headers: frozenset[str] = frozenset()) -> Json:
        if format not in FORMATS:
            raise invalid(f"Invalid value at 'format': {format}")
        shown: Json = {
            **self.labelled(),
            "snippet": self.mail.snippet,
            "sizeEstimate": len(self.mail.raw),
            "historyId": str(self.history_id),
            "internalDate": str(self.internal_date),
        }
        if format == "full":
            shown["payload"] = self.mail.payload()
        elif format == "metadata":
            shown["payload"] = self.mail.envelope(metadata_headers)
        elif format == "raw":
            shown["raw"] = base64.urlsafe_b64encode(self.mail.raw).decode()
        return shown
