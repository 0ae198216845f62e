"""Replies as large providers and common servers give them, and what each means.

Each line of `provider_replies.txt` is pinned: the classifier was written with it. `reply_corpus.txt` was written before
the classifier that it measures: one half, drawn by a fixed seed, was tuned on, of the other only the count of errors
was looked at. A reply that turns out to be read wrongly belongs in the first file, so that the second keeps its worth.
`proof_or_not.txt` only says which replies prove that an address does not exist: `odd` ones were made to mislead the
classifier, which was mended for those that did, and `fresh` ones were written when it was done.
"""

from pathlib import Path
from random import Random
from typing import NamedTuple, cast

from postroom.core.outbound.replies import Phase

SEED = 3463


class ProviderReply(NamedTuple):
    provider: str
    phase: Phase
    result: str
    bounce_class: str
    reply: str


def _read(line: str) -> ProviderReply:
    provider, phase, result, bounce_class, reply = line.split(" | ", 4)
    return ProviderReply(provider, cast("Phase", phase), result, bounce_class, reply.replace("\\n", "\n"))


def _lines(name: str) -> list[str]:
    return Path(__file__).with_name(name).read_text("utf-8").splitlines()


def _read_file(name: str) -> list[ProviderReply]:
    return [_read(line) for line in _lines(name)]


def _halves(replies: list[ProviderReply]) -> tuple[list[ProviderReply], list[ProviderReply]]:
    shuffled = list(replies)
    Random(SEED).shuffle(shuffled)
    return shuffled[: len(shuffled) // 2], shuffled[len(shuffled) // 2 :]


class Proof(NamedTuple):
    """A reply, and whether it proves that the address does not exist."""

    kind: str
    is_proof: bool
    phase: Phase
    reply: str


def _read_proof(line: str) -> Proof:
    kind, label, phase, reply = line.split(" | ", 3)
    return Proof(kind, label == "hard", cast("Phase", phase), reply.replace("\\n", "\n"))


PROOFS = [_read_proof(line) for line in _lines("proof_or_not.txt")]
REPLIES = _read_file("provider_replies.txt")
TUNED_ON, HELD_OUT = _halves(_read_file("reply_corpus.txt"))
