"""Replies as large providers and common servers give them, and what each means: `provider_replies.txt`."""

from pathlib import Path
from typing import NamedTuple, cast

from postroom.core.outbound.replies import Phase


class ProviderReply(NamedTuple):
    provider: str
    phase: Phase
    result: str
    bounce_class: str
    reply: str


def _read(line: str) -> ProviderReply:
    provider, phase, result, bounce_class, reply = line.split(" | ", 4)
    return ProviderReply(provider, cast("Phase", phase), result, bounce_class, reply.replace("\\n", "\n"))


REPLIES = [_read(line) for line in Path(__file__).with_suffix(".txt").read_text("utf-8").splitlines()]
