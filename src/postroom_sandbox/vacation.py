"""The vacation responder of a mailbox: its settings. The sandbox keeps them, but answers nobody."""

from typing import Any

from postroom_sandbox.refusal import invalid
from postroom_sandbox.requests import flag_in, int64_in, text_in

Json = dict[str, Any]

FLAGS = ("enableAutoReply", "restrictToContacts", "restrictToDomain")
TEXTS = ("responseSubject", "responseBodyPlainText", "responseBodyHtml")
TIMES = ("startTime", "endTime")


class Vacation:
    """The settings, as Gmail shows them: texts and times only if they are set."""

    def __init__(self) -> None:
        self._settings: Json = {}

    def as_json(self) -> Json:
        return {**dict.fromkeys(FLAGS, False), **self._settings}

    def update(self, given: Json) -> None:
        """Replace all settings; those that are not given are reset."""
        settings: Json = {name: flag_in(given, name) for name in FLAGS}
        settings |= {name: text for name in TEXTS if (text := text_in(given, name))}
        times = {name: number for name in TIMES if (number := int64_in(given, name))}
        if settings["enableAutoReply"] and not any(name in settings for name in TEXTS):
            raise invalid("To enable the auto-reply, set a response subject or a response body")
        if len(times) == len(TIMES) and times["startTime"] >= times["endTime"]:
            raise invalid("startTime must precede endTime")
        self._settings = {**settings, **{name: str(number) for name, number in times.items()}}

    def clear(self) -> None:
        self._settings = {}
