"""Conditions on who sent a message and to whom: by address, by domain, and by knowledge of the sender."""

from collections.abc import Callable
from operator import attrgetter

from postroom.core.mail.addresses import canonical, canonical_domain
from postroom.core.rules import gmail_terms, sieve_terms
from postroom.core.rules.condition_spec import (
    MOST_SHOWN,
    ConditionSpec,
    Fact,
    FormField,
    GmailTerm,
    Need,
    SieveTerm,
    needing,
    observed_whether,
    of_texts,
    says,
    whether,
)
from postroom.core.rules.facts import Seen
from postroom.core.rules.leaf import BrokenRule, Check, domain_of, text_of

# Of these people there are also conditions on the words about them, and on the user's own addresses.
_WITH_WORDS = frozenset({"from", "to", "cc", "bcc", "reply_to"})
_WITH_ME = frozenset({"from", "to", "cc", "bcc"})

Addresses = Callable[[Seen], frozenset[str] | tuple[str, ...]]


def _recipients(seen: Seen) -> tuple[str, ...]:
    return seen.message.to


def _in_header(kind: str) -> Addresses:
    return lambda seen: seen.addresses[kind]


def _sender_email(field: str, argument: object) -> Check:
    wanted = canonical(text_of(field, argument))
    if wanted is None:
        raise BrokenRule(field, "is not an address", "write it as ida@shop.example; for a domain use sender_domain")
    return Check(lambda seen: seen.sender == wanted, (("sender", wanted),))


def _sender_domain(field: str, argument: object) -> Check:
    wanted = domain_of(field, text_of(field, argument))
    return Check(lambda seen: seen.domain == wanted, (("domain", wanted),))


def _in_addresses(kind: str, found: Addresses) -> Callable[[str, object], Check]:
    """Check for an address, or for a domain with an @ before it, among those that are found."""

    def check(field: str, argument: object) -> Check:
        wanted = _address_or_domain(kind, field, argument)
        if wanted.startswith("@"):
            return Check(lambda seen: any(each.endswith(wanted) for each in found(seen)), ((kind, wanted),))
        return Check(lambda seen: wanted in found(seen), ((kind, wanted),))

    return check


def _address_or_domain(kind: str, field: str, argument: object) -> str:
    """The canonical address, or the domain with an @ before it."""
    text = text_of(field, argument).strip()
    if text.startswith("@"):
        return f"@{domain_of(field, text)}"
    wanted = canonical(text)
    if wanted is None:
        remedy = "write ida@shop.example, or @shop.example for a whole domain"
        if kind in _WITH_ME and text.lower() == "me":
            remedy = f"write `{kind}_me: true` for your own addresses"
        elif kind in _WITH_WORDS:
            remedy += f"; for a name use {kind}_words"
        raise BrokenRule(field, "is not an address", remedy)
    return wanted


def _observed_sender(_: object, seen: Seen) -> str:
    return f"it is from {seen.sender or 'no one'}"


def _observed_recipients(_: object, seen: Seen) -> str:
    return f"it is to {', '.join(seen.message.to[:MOST_SHOWN]) or 'no one'}"


def _observed_addresses(kind: str) -> Callable[[object, Seen], str]:
    return lambda _, seen: f"it has {', '.join(sorted(seen.addresses[kind])[:MOST_SHOWN]) or 'no address there'}"


def _domain(text: str) -> str:
    return canonical_domain(text.strip().rpartition("@")[2].rstrip("."))


@of_texts
def _same_domain(one: str, other: str) -> bool:
    return _domain(one) == _domain(other)


@of_texts
def _other_domain(one: str, other: str) -> bool:
    return _domain(one) != _domain(other)


@of_texts
def _other_address(one: str, other: str) -> bool:
    return canonical(one) != canonical(other)


@of_texts
def _same_sender(one: str, other: str) -> bool:
    return canonical(one) == canonical(other) or (other.startswith("@") and _domain(one) == _domain(other))


@of_texts
def _within(one: str, other: str) -> bool:
    """The same address, or one of the domain."""
    is_same = one.strip().casefold() == other.strip().casefold()
    return is_same or (other.startswith("@") and _domain(one) == _domain(other))


def _address(
    kind: str,
    where: str,
    clause: str,
    gmail: GmailTerm | None = None,
    sieve: SieveTerm | None = None,
    form: FormField | None = None,
) -> ConditionSpec:
    """The condition on the addresses in one header, a field of `ADDRESS_HEADERS`."""
    return ConditionSpec(
        kind,
        _in_addresses(kind, _in_header(kind)),
        meaning=f"one of the addresses in {where} is this one, or of this domain",
        example="ida@shop.example",
        says=says(clause),
        observed=_observed_addresses(kind),
        needs=needing("headers"),
        implies={kind: _within},
        gmail=gmail,
        sieve=sieve,
        form=form,
    )


def _me(
    kind: str,
    found: Addresses,
    where: str,
    yes: str,
    no: str,
    observed: Callable[[object, Seen], str] = observed_whether,
    needs: tuple[Need, ...] = (),
    form: FormField | None = None,
    note: str = "",
) -> ConditionSpec:
    """The condition that one of the user's own addresses is there."""

    def holds(seen: Seen) -> bool:
        own = seen.message.own_addresses or frozenset()
        return any(each in own for each in found(seen))

    return whether(
        f"{kind}_me",
        holds,
        f"the account's own address is in {where}; `false`: it is not{note}",
        yes,
        no,
        observed,
        needing("headers", "own_addresses", *needs),
        gmail_terms.whether(f"{kind}:me"),
        form,
    )


def _fact(kind: Fact, meaning: str, yes: str, no: str, form: FormField) -> ConditionSpec:
    """The condition on a fact of the same name."""
    fact: Callable[[Seen], bool | None] = attrgetter(f"message.{kind}")
    return whether(kind, fact, meaning, yes, no, needs=needing(kind), form=form)


ADDRESSES = (
    _address(
        "from",
        "`From`",
        "it is from {}",
        gmail_terms.people("from", "from"),
        sieve_terms.address("from"),
        FormField("From", "ida@shop.example or @shop.example", 10),
    ),
    _address("to_header", "`To` alone", "To has {}", sieve=sieve_terms.address("to")),
    _address("cc", "`Cc`", "Cc has {}", gmail_terms.people("cc", "cc"), sieve_terms.address("cc")),
    _address("bcc", "`Bcc`", "Bcc has {}", gmail_terms.people("bcc", "bcc"), sieve_terms.address("bcc")),
    _address(
        "reply_to",
        "`Reply-To`",
        "Reply-To has {}",
        gmail_terms.people("reply_to", "replyto"),
        sieve_terms.address("reply-to"),
    ),
    _address(
        "delivered_to",
        "`Delivered-To`",
        "it was delivered to {}",
        gmail_terms.address("delivered_to", "deliveredto"),
    ),
)
SPECS = (
    ConditionSpec(
        "sender_email",
        _sender_email,
        meaning="the sender (the first address in `From`) has this address",
        example="ida@shop.example",
        says=says("the sender is {}"),
        observed=_observed_sender,
        implies={"sender_email": _same_sender, "from": _same_sender, "sender_domain": _same_domain},
        excludes={"sender_email": _other_address, "sender_domain": _other_domain},
        gmail=gmail_terms.sender(),
        sieve=sieve_terms.address("from"),
        form=FormField("Sender's address", "ida@shop.example", 190),
    ),
    ConditionSpec(
        "sender_domain",
        _sender_domain,
        meaning="the sender is from exactly this domain",
        example="shop.example",
        says=says("the sender is from {}"),
        observed=_observed_sender,
        implies={"sender_domain": _same_domain},
        excludes={"sender_domain": _other_domain, "sender_email": _other_domain},
        gmail=gmail_terms.sender("@"),
        sieve=sieve_terms.address("from", before="@"),
        form=FormField("Sender's domain", "shop.example", 200),
    ),
    ConditionSpec(
        "to",
        _in_addresses("to", _recipients),
        meaning="one of the addresses in `To` or `Cc` is this one, or of this domain",
        example="me@x.example",
        says=says("it is to {}"),
        observed=_observed_recipients,
        needs=needing("headers", "recipients"),
        implies={"to": _within},
        gmail=gmail_terms.recipients(),
        sieve=sieve_terms.address("to", "cc"),
        form=FormField("To or Cc", "me+news@x.example", 30),
    ),
    *ADDRESSES,
    _me(
        "from",
        _in_header("from"),
        "`From`",
        "it is from me",
        "it is not from me",
        _observed_sender,
        note=". Your own mail to others is never decided, so `from_me` matches mail to yourself",
    ),
    _me(
        "to",
        _recipients,
        "`To` or `Cc`",
        "it is to me",
        "it is not to me",
        _observed_recipients,
        ("recipients",),
        FormField("Is to me", place=180),
    ),
    _me("cc", _in_header("cc"), "`Cc`", "I am in Cc", "I am not in Cc"),
    _me("bcc", _in_header("bcc"), "`Bcc`", "I am in Bcc", "I am not in Bcc"),
    _fact(
        "sender_in_contacts",
        "the sender is a [contact](../how-to/contacts.md) of the mailbox: from an address book, or you have "
        "written to them",
        "the sender is a contact",
        "the sender is no contact",
        FormField("Sender is a contact", place=150),
    ),
    _fact(
        "sender_seen_before",
        "an earlier message from the sender was accepted for this account",
        "the sender wrote before",
        "the sender never wrote before",
        FormField("Sender wrote before", place=160),
    ),
    _fact(
        "reply_to_mine",
        "`In-Reply-To` names a message that you sent",
        "it answers a message of mine",
        "it answers no message of mine",
        FormField("Answers my message", place=170),
    ),
)
