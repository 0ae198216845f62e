"""The sentences in which servers say why they refuse mail, as patterns.

They see a text in lower case, without addresses and links: the name of a recipient or a host must not decide. Only
`REPUTATION` sees links too, since many servers name a blocklist by its link alone.
"""

import re


def _any_of(*parts: str) -> re.Pattern[str]:
    return re.compile("|".join(parts))


_LINK = re.compile(r"(?:https?://|www\.)\S+")
_ADDRESS = re.compile(r"<[^<>\s]*@[^<>\s]*>|[^\s<>()\"':;,]+@(?:\[[^\]\s]*\]|(?:[\w-]+\.)*[\w-]+)")
_REPORTED = re.compile(r"\(in reply to [^()]{1,60}\)")
_BLANKS = re.compile(r"\s+")
_CODE = re.compile(r"(?<![\d.])([245]\.\d{1,3}\.\d{1,3})(?![\d.])")


def sentence_of(text: str) -> str:
    """The text as the patterns want it, with its links."""
    plain = text.lower().replace("\u2019", "'").replace("`", "'")
    return _BLANKS.sub(" ", _ADDRESS.sub(" ", _REPORTED.sub(" ", plain))).strip()


def without_links(sentence: str) -> str:
    return _BLANKS.sub(" ", _LINK.sub(" ", sentence)).strip()


def code_within(text: str) -> str | None:
    """An enhanced status code inside the text, as qmail's `(#5.1.1)` or that of a server behind the one we talk to."""
    found = _CODE.search(text)
    return None if found is None else found[1]


GREYLIST = _any_of(r"gr[ae]y-?\s?list", r"not yet authorized to deliver mail from")

FULL = _any_of(
    r"(?:mail ?box|inbox|mail ?folder|storage|account|user|recipient|disk|over|exceed)\S* (?:\S+ ){0,3}quota",
    r"quota (?:\S+ ){0,2}(?:exceeded|full|reached)|over ?-?quota|quotaexceeded|shutoffquota|out of storage space",
    r"(?:mail ?box|inbox|mail ?folder|storage|account)\S* (?:\S+ ){0,3}(?:is |too |are )?(?:full|voll)\b",
    r"mailbox (?:size|limit|has exceeded|exceeds)|insufficient (?:disk|storage) space for (?:this )?user",
    r"exceeded storage allocation|(?:bo[iî]te|messagerie) (?:\S+ ){0,3}pleine|caixa (?:\S+ ){0,3}cheia",
    r"(?:buz[oó]n|casella) (?:\S+ ){0,3}(?:llen[oa]|pien[oa])|postfach (?:\S+ ){0,2}voll|переполнен|邮箱已满",
)
SENDING_QUOTA = _any_of(
    r"(?:daily|hourly|sending|message|sender)\S* (?:\S+ ){0,2}quota exceeded|sending (?:quota|limit)",
)

SENDER = _any_of(
    r"\bsender(?:'s)? (?:\S+ ){0,2}(?:address |domain |name )?(?:rejected|denied|blocked|verif|invalid|unknown|not)",
    r"sender verif|(?:domain|address) of (?:the )?sender|sender(?:'s)? (?:domain|address)|envelope sender",
    r"(?:from|mail from|return-path|5321\.?\s?from) (?:domain|address)|bad outbound sender|not a valid sender",
    r"\byour (?:\S+ )?(?:account|address|domain|mailbox)\b|(?:address|domain) in (?:the )?(?:from|sender|reply)",
    r"(?:return|originating|reply) address|\b(?:ehlo|helo)\b|\bhelo command|badmailfrom|send as this sender",
)
"""About the sender's address, although its words are those for a recipient: `Sender address rejected: not found`."""

REPUTATION = _any_of(
    r"block ?-?list|black ?-?list|deny ?-?list|blackhole|\brbl\b|dnsbl|spamhaus|spamcop|barracudacentral",
    r"barracuda ?reputation|barracudanetworks\.com/reputation|sorbs|abuseat|uceprotect|ipcheck\.|hostedemail",
    r"reputation|sender ?score|senderbase|cloudmark|invaluement|ask your postmaster for help|\[tss\d+\]",
    r"unsolicited mail originating from|user complaints|un(?:expected|usual) (?:volume|rate)|banned send|\(s3\d{3}\)",
    r"\b(?:ip|host|network|client|server)\b\S* (?:\S+ ){0,4}(?:blocked|banned|listed|bad history|frequency)\b",
    r"blocked (?:your )?(?:ip|host|network|server|dynamic)|\bdynamic(?:ally)? (?:\S+ )?ip|dial-?up|\bip block",
    r"reverse (?:dns|hostname|lookup)|\brdns\b|\bptr\b|client host rejected|spam abuse|account has been banned",
    r"\b(?:your|sending|source|client|the) ip(?:v[46])? address",
)

PASSING = _any_of(
    r"tempor(?:ar(?:y|ily)|airement)|try (?:again|later|it later)|retry later|come back later|later time|please retry",
    r"currently (?:unavailable|not available|unable)|at a rate that|too quickly|recipientthrottled|receive per hour",
    r"lookup (?:failure|failed|error)|shutting down|overload|maintenance|server busy|mailbox busy|\bldap\b",
    r"directory server|configuration error|internal error|(?:message|queue)\S* (?:has )?expired|message timeout",
    r"connection (?:refused|timed out)|not responding|did not respond|out of memory|insufficient system",
    r"(?:mail(?:ing)?|routing|forwarding) loop|too many hops|hop count|looping|\d+ hops|too many \"?received",
    r"queue full|system (?:error|problem|not accepting)|cannot (?:connect|be reached)|unreachable",
)
"""A trouble that may pass, or one on the way: it says nothing about the address."""

_WHO = (
    r"(?:user|recipient|mail ?box|account|address|addressee|alias|person|customer|subscriber|employee|member|login|"
    r"e-?mail|mail-?address|inbox|mailing list|group|box|local[ -]part)"
)
# Words between the noun and its predicate. A sentence that names others says nothing about the recipient.
_OTHERS = r"sender|from|your\b|server|host|client|ip\b|message|policy|permi|connection|temporar|password|certific"
_BETWEEN = rf"(?: (?!{_OTHERS})\S+){{0,6}}?"
_GONE = (
    r"(?:unknown|inactive|inactivity|deactivated|disabled(?! (?:mail|message|deliver|receiv))|closed(?! to)|deleted|"
    r"(?:not|\S{0,9}n't) (?:be )?(?:found|known|recogni[sz]ed|registered|active|in use|listed(?! as)|valid)|"
    r"removed|terminated|discontinued|expired|no longer|misspelled|has moved|has left|"
    r"(?:not|n't) (?:been )?exist|non-?existent|unavailable or not local)\b"
)
GONE = _any_of(
    r"\b(?:no such|unknown|undefined|invalid|non-?existent|unroute?able|illegal|undeliverable|bad destination|"
    rf"not an? (?:valid|known|existing|real|current)|bad recipient|incorrect) (?:\S+ )??{_WHO}s?\b"
    r"(?! (?:content|format|message|policy))",
    rf"\b{_WHO}s? (?:name )?(?:is |was )?(?:invalid|incorrect)\b(?! sender)",
    r"\bnot an? (?:\S+ )??(?:recipient|user|mailbox|customer|account|subscriber|address)\b(?! (?:of|that|which))",
    rf"(?:unable to|cannot|can't|could not|couldn't|failed to) (?:find|locate) (?!your)(?:\S+ ){{0,3}}?{_WHO}\b",
    r"\bno ?(?:one|body) (?:\S+ )?(?:here|at this|at that|by that)",
    r"\bno (?:\S+ )??(?:mailbox|user|account|person|address|recipient)\b"
    r"(?= (?:here|found|by|with|of|at|called|named|exists?|for|on|in|match\S*|associated)\b|[.,;:!)]|$)",
    rf"\b{_WHO}\S*{_BETWEEN} {_GONE}",
    r"(?:does|do)(?:n't| not) (?:exist|have an? \S+ account)|may not exist",
    r"no (?:mailbox|recipient|user|account|one|person) (?:\S+ ){0,2}(?:here|found|by that name|of that name)",
    r"not our customer|recip(?:ient)? ?not ?found|no longer (?:\S+ ){0,3}(?:company|employed|works|active|here)",
    r"(?:person|recipient|user|employee) (?:\S+ ){0,6}(?:has left|left the|no longer)",
    rf"\b{_WHO}\S* (?:is not|isn't|not) (?:here|known|(?:in|at|on) (?:our |the |this )?"
    r"(?:\S+ )?(?:database|directory|system|server|host|site|domain))\b",
    r"user not local|not a local (?:user|address)|recipients? (?:\S+ )?cannot be verified",
    r"recipient verif\S* failed|not in my validrcptto|suppressed sending to this",
    # German, French, Spanish, Portuguese, Italian, Polish, Russian, Chinese, Japanese.
    r"empf(?:ä|ae)nger (?:\S+ ){0,2}(?:unbekannt|existiert|nicht gefunden)|unbekannte[rn]? (?:empf|benutzer|adress)",
    r"(?:utilisateur|destinataire|bo[iî]te|adresse|compte)\S* (?:\S+ ){0,3}(?:inconnue?|invalide|inexistant|n'existe)",
    r"(?:usu[aá]rio|destinat[aá]ri[oa]|utente|indirizzo|cuenta|conta|direcci[oó]n|casella) (?:\S+ ){0,2}"
    r"(?:inexistente|inesistente|desco\S+cid[oa]|sconosciut[oa]|n[oã]o? existe|non esiste|no encontrad[oa])",
    r"existiert nicht|nie ma takiego|nieznany (?:u|adres)|nie istnieje",
    r"не (?:найден|существует|зарегистрирован|обнаружен)|不存在|未找到|用户不|見つかりません|存在しません",
)
"""The user, or the mailbox, is not there (any more)."""

NO_DOMAIN = _any_of(
    r"(?:no such|unknown|invalid|non-?existent|unroute?able) (?:recipient |mail )?(?:domain|host)\b",
    r"nxdomain|nonexistentdomain|domainnonexistent|bad destination system|find the recipient domain|null ?mx",
    r"(?:domain|host|hostname)\b(?: (?!sender|your\b|client)\S+){0,3} (?:not found|unknown|does(?:n't| not) exist)",
    r"(?:does not accept|doesn't accept|takes no|accepts no) (?:e-?)?mail\b(?! from| with| that)",
)
WEAKLY_GONE = _any_of(rf"\b{_WHO}\S* (?:\S+ ){{0,2}}(?:is )?unavailable\b")
"""Said of addresses that do not exist, and by few servers of others: proof only where nothing speaks against it."""

STRICT_CONTENT = _any_of(
    r"phish|\bvirus|malware|spam (?:message|detected|content|score|suspected)|(?:is|as|like|suspected|likely) spam",
)
"""Blames the message, even if it says more."""

CONTENT = _any_of(
    r"\bspam|junk ?mail|unsolicited|\bube\b|\buce\b|virus|malware|phish|infected|attachment|executable|suspicious",
    r"message (?:\S+ ){0,4}(?:too big|too large|size|too long|length)|too large|size limit|sizelimit",
    r"maximum (?:message )?size|exceeds? (?:the |fixed |our )?(?:max|limit)|message length|databytes|file too big",
    r"(?:blocked|rejected|suspicious|refused|violation|denied|prohibited|not allowed)"
    r".{0,60}(?:content|\burls?\b|\blinks?\b)",
    r"content.{0,40}(?:blocked|rejected|refused|denied|not allowed|suspicious|filter|conversion)|message filtered",
    r"(?:filtered|quarantined) (?:this |the |your )?(?:message|mail)|banned file",
    r"contains? (?:a )?(?:\S+ )?(?:url|link|file|nul|banned|prohibited)|\bnul (?:char|byte)",
    r"bare (?:lf|cr|newline|linefeed|<)|line (?:is )?too long",
    r"headers? (?:\S+ )?(?:too|missing|syntax|malformed|duplicate)|from:? header, |multiple from",
    r"malformed|rfc ?-?5322 (?:section|compl|viol)|5322 compliant",
)

STRICT_POLICY = _any_of(
    r"\bdmarc\b|\bspf\b|\bdkim\b|(?:does not|do not|don't|unable to|not permitted to|no) relay|from unknown",
    r"too many(?! (?:hops|\"?received))",
    r"relay(?:ing)? (?:access )?(?:denied|not permitted|not allowed|disallowed|prohibited)|smtp auth",
    r"(?:invalid|unknown|bad) command",
    r"policy (?:restriction|violation|rejection|reason)|from strangers|not authenticated|unauthenticated",
)
"""Blames us, even if it says more: no proof unless the code is."""

POLICY = _any_of(
    r"\bdmarc\b|\bspf\b|\bdkim\b|authenticat|\brelay|starttls|encrypt|\btls\b|password|credential",
    r"rate ?-?limit|too many|exceeded|throttl|polic(?:y|ies)|prohibit|not allowed|not permitted|permission|restrict",
    r"moderated|not authori[sz]ed|(?:not|n't) in (?:my|our) list|allowed-?senders|rejected by recipient|blocked you",
    r"not accepting (?:mail|messages) from|banned recipient|unregistered|not verified|address book",
    r"(?:accepts?|only) (?:\S+ ){0,3}(?:mail|messages) from|limit (?:\S+ ){0,2}reached|(?:sending|daily) limit",
)
