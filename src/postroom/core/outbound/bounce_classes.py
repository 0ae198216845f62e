"""Why a recipient was not reached, in seven classes, by what the server said.

Some enhanced status codes (RFC 3463) are precise, and decide. Others are general, and providers add a sentence that
says more: then the text decides, and the general meaning of the code only if the text does not. The sentences are
searched in the order of the list: one about a blocklist often says `rejected` and `spam` too.
"""

import re
from enum import StrEnum


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


def class_of(text: str, enhanced: str | None, later: bool) -> BounceClass | None:
    """The class by text and enhanced status code; None if they do not say. `later` is for 4xx."""
    if _GREYLIST.search(text):
        return BounceClass.GREYLIST
    detail = enhanced.partition(".")[2] if enhanced is not None else ""
    found = _PRECISE.get(detail) or _by_text(text) or _GENERAL.get(detail.partition(".")[0])
    # "Later" about an address is a trouble of the server's own: it cannot tell now whether the address exists.
    return BounceClass.SOFT if later and found is BounceClass.HARD else found


def class_of_code(code: int | None) -> BounceClass | None:
    """The class by a permanent code alone, where it has a meaning of its own."""
    return _CODES.get(code or 0)


def _by_text(text: str) -> BounceClass | None:
    if _REPUTATION.search(text):
        return BounceClass.REPUTATION
    sentence = _URL.sub(" ", text)
    return next((found for found, pattern in _SENTENCES if pattern.search(sentence)), None)


def _any_of(*parts: str) -> re.Pattern[str]:
    return re.compile("|".join(parts), re.IGNORECASE)


_URL = re.compile(r"https?://\S+", re.IGNORECASE)

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
    "4.4": BounceClass.HARD,  # unable to route
    "4.6": BounceClass.HARD,  # routing loop
    "7.20": BounceClass.POLICY,  # DKIM, SPF, DMARC (RFC 7372)
    "7.23": BounceClass.POLICY,
    "7.25": BounceClass.REPUTATION,  # reverse DNS
    "7.26": BounceClass.POLICY,
    "7.28": BounceClass.REPUTATION,  # mail flood
}
# By the second number: address, mailbox, system, network, protocol, content, security.
_GENERAL = {
    "1": BounceClass.HARD,
    "2": BounceClass.HARD,
    "3": BounceClass.SOFT,
    "4": BounceClass.SOFT,
    "5": BounceClass.POLICY,
    "6": BounceClass.CONTENT,
    "7": BounceClass.POLICY,
}
_CODES = {
    521: BounceClass.HARD,  # the host takes no mail (RFC 7504)
    530: BounceClass.POLICY,
    535: BounceClass.POLICY,
    552: BounceClass.FULL,
    553: BounceClass.HARD,
    556: BounceClass.HARD,  # the domain takes no mail (RFC 7504)
}

_GREYLIST = _any_of(r"gr[ae]y-?\s?list", r"not yet authorized to deliver mail from")
_REPUTATION = _any_of(
    r"block ?-?list|black ?-?list|deny ?-?list|\brbl\b|dnsbl|spamhaus|spamcop|barracuda|sorbs|abuseat|uceprotect",
    r"reputation|proofpoint|sender ?score|senderbase|cloudmark|invaluement|tosa@rx\.t-online|\[TSS\d+\]",
    r"unsolicited mail originating from your ip|user complaints|unexpected volume|banned sending ip|\(S3\d{3}\)",
    r"\b(?:ip|host|network|client|server)\b\S* (?:\S+ ){0,4}(?:blocked|banned|listed|bad history)\b",
    r"blocked (?:your )?(?:ip|host|network|server)|\bdynamic(?:ally)? (?:\S+ )?ip|dial-?up",
    r"reverse (?:dns|hostname)|\brdns\b|\bptr\b",
)
_SENTENCES = (
    (
        BounceClass.FULL,
        _any_of(
            r"\bquota\b|(?:mailbox|inbox|mail ?folder|storage|account) (?:\S+ ){0,2}full\b|out of storage space",
            r"mailbox (?:size|limit|has exceeded|exceeds)|insufficient (?:disk|storage) space for (?:this )?user",
        ),
    ),
    (
        BounceClass.CONTENT,
        _any_of(
            r"\bspam\b|spammy|unsolicited|\bvirus|malware|phish|infected|attachment|executable",
            r"message (?:\S+ ){0,3}(?:too big|too large|size)|too large|size limit|maximum (?:message )?size",
            r"(?:blocked|rejected|suspicious|refused|violation).{0,40}(?:content|\burls?\b|\blinks?\b)|content filter",
            r"bare (?:lf|cr|newline|linefeed|<)|line (?:is )?too long|headers? (?:too|missing|syntax)|rfc ?-?5322",
        ),
    ),
    (
        BounceClass.HARD,
        _any_of(
            r"(?:no such|unknown|invalid|non-?existent|unrouteable|unroutable) (?:\S+ )?"
            r"(?:user|recipient|mailbox|address|account|person|local|domain|host)",
            r"(?:user|recipient|mailbox|account|address|alias|email)\S* (?:\S+ ){0,7}(?:unknown|not found|disabled|"
            r"inactive|suspended|no longer|invalid|not (?:been )?exist|not listed|deactivated|unavailable|terminated)",
            r"(?:does ?n[o']t|does not|dosn't) (?:exist|have an? \S+ account)|not a (?:valid|known) (?:user|recipient)",
            r"\bno (?:mailbox|recipient|user|account)\b|discontinued|recipient (?:address )?rejected: access denied",
        ),
    ),
    (
        BounceClass.POLICY,
        _any_of(
            r"\bdmarc\b|\bspf\b|\bdkim\b|unauthenticated|authenticat|\brelay|starttls|encrypt",
            r"rate ?-?limit|too many|exceeded the|policy|prohibit|not allowed|permission|restricted|moderated",
            r"(?:sender|from) (?:address )?(?:rejected|denied|verif|blocked)",
        ),
    ),
)
