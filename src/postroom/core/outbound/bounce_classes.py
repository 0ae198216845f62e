"""Why a recipient was not reached, in eight classes, from the server's reply.

`HARD` stops mail to an address for good, so it needs proof: a code or a sentence that says that the address or its
domain does not exist. A precise enhanced status code (RFC 3463) decides, unless the sentence speaks of something else:
servers put `5.1.1` in front of many things. Then the sentence decides (`reply_words.py`), then the general meaning of
the code. A refusal without any reason is `UNEXPLAINED`.
"""

from collections.abc import Iterator
from enum import StrEnum

from postroom.core.outbound import reply_words as words


class BounceClass(StrEnum):
    HARD = "hard"
    """The address, or its domain, does not exist or takes no mail."""
    SOFT = "soft"
    """The destination, or the way to it, has a problem of its own."""
    POLICY = "policy"
    """The destination does not take such mail from such a sender: authentication, encryption, permission, rate."""
    REPUTATION = "reputation"
    """The destination distrusts our address or domain: blocklists, complaints."""
    FULL = "full"
    """The mailbox is full."""
    GREYLIST = "greylist"
    """The destination wants to see a second attempt."""
    CONTENT = "content"
    """The message itself is refused: taken for spam or malware, too large, malformed."""
    UNEXPLAINED = "unexplained"
    """The destination refuses for good, and does not say why."""


def class_of(text: str, enhanced: str | None, later: bool) -> BounceClass | None:
    """The class by text and enhanced status code; None if they do not say. `later` is for 4xx."""
    detail = (enhanced or words.code_within(text) or "").partition(".")[2]
    precise = _PRECISE.get(detail)
    said = [each for each in _classes_in(text, detail) if not (later and each is BounceClass.SOFT)]
    if precise is BounceClass.HARD and BounceClass.HARD in said:
        found: BounceClass | None = BounceClass.HARD
    elif precise is None or precise is BounceClass.HARD:
        found = next(iter(said), precise) or _GENERAL.get(detail.partition(".")[0])
    else:
        found = BounceClass.GREYLIST if BounceClass.GREYLIST in said else precise
    # "Later" about an address is a trouble of the server's own: it cannot tell now whether the address exists.
    return BounceClass.SOFT if later and found is BounceClass.HARD else found


def class_of_code(code: int | None) -> BounceClass | None:
    """The class by a permanent code alone, where it has a meaning of its own."""
    return _CODES.get(code or 0)


def _classes_in(text: str, detail: str) -> Iterator[BounceClass]:
    """The classes that the sentence speaks of, the one that explains it best first."""
    linked = words.sentence_of(text)
    sentence = words.without_links(linked)
    if words.GREYLIST.search(linked):
        yield BounceClass.GREYLIST
    if words.FULL.search(sentence) and not words.SENDING_QUOTA.search(sentence):
        yield BounceClass.FULL
    if words.SENDER.search(sentence):
        yield BounceClass.POLICY
    if words.REPUTATION.search(linked):
        yield BounceClass.REPUTATION
    if words.STRICT_CONTENT.search(sentence):
        yield BounceClass.CONTENT
    if words.STRICT_POLICY.search(sentence):
        yield BounceClass.POLICY
    passing = words.PASSING.search(sentence) is not None
    gone = any(each.search(sentence) for each in (words.GONE, words.NO_DOMAIN)) and "header" not in sentence
    weakly = words.WEAKLY_GONE.search(sentence) is not None or _is_known_refusal(sentence, detail)
    if gone or (weakly and not passing):
        yield BounceClass.HARD
    if words.CONTENT.search(sentence):
        yield BounceClass.CONTENT
    if passing:
        yield BounceClass.SOFT
    if words.POLICY.search(sentence):
        yield BounceClass.POLICY


def _is_known_refusal(sentence: str, detail: str) -> bool:
    """Whether this is Microsoft's or Cisco's reply for an address that is not in the directory of the domain."""
    return any(detail == code and words_of in sentence for code, words_of in _REFUSALS_BY_DIRECTORY)


_REFUSALS_BY_DIRECTORY = (("4.1", "recipient address rejected: access denied"), ("1.0", "address rejected"))


# Without their first digit.
_PRECISE = {
    "1.1": BounceClass.HARD,  # no such mailbox
    "1.2": BounceClass.HARD,  # no such domain
    "1.3": BounceClass.HARD,  # not an address
    "1.6": BounceClass.HARD,  # the mailbox has moved
    "1.7": BounceClass.POLICY,  # the sender's address
    "1.8": BounceClass.POLICY,
    "1.10": BounceClass.HARD,  # null MX (RFC 7505)
    "2.2": BounceClass.FULL,
    "2.3": BounceClass.CONTENT,  # too long for this mailbox
    "3.4": BounceClass.CONTENT,  # too big for this system
    "4.6": BounceClass.SOFT,  # routing loop
    "4.7": BounceClass.SOFT,  # not delivered in time
    "7.20": BounceClass.POLICY,  # DKIM, SPF, DMARC (RFC 7372)
    "7.23": BounceClass.POLICY,
    "7.25": BounceClass.REPUTATION,  # reverse DNS
    "7.26": BounceClass.POLICY,
    "7.28": BounceClass.REPUTATION,  # mail flood
}
# By the second number: system, network, protocol, content, security. Those of address and mailbox alone prove nothing.
_GENERAL = {
    "3": BounceClass.SOFT,
    "4": BounceClass.SOFT,
    "5": BounceClass.POLICY,
    "6": BounceClass.CONTENT,
    "7": BounceClass.POLICY,
}
_CODES = {
    530: BounceClass.POLICY,
    535: BounceClass.POLICY,
    552: BounceClass.FULL,
    556: BounceClass.HARD,  # the domain takes no mail (RFC 7504)
}
