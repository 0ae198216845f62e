"""Conditions on who sent a message and to whom: by address, by domain, by name, and by what is known of the sender."""

from collections.abc import Callable, Mapping

from postroom.core.mail.addresses import canonical
from postroom.core.rules.facts import MessageFacts, Seen
from postroom.core.rules.leaf import BrokenRule, Leaf, Read, domain_of, text_of, yes_or_no

# Conditions on the addresses in one header each; `to` looks at two.
ADDRESS_KINDS = ("from", "to_header", "cc", "bcc", "reply_to", "delivered_to")


def _sender_email(field: str, argument: object) -> Leaf:
    wanted = canonical(text_of(field, argument))
    if wanted is None:
        raise BrokenRule(field, "is not an address", "write it as ida@shop.example; for a domain use sender_domain")
    return Leaf("sender_email", argument, lambda seen: seen.sender == wanted, (("sender", wanted),))


def _sender_domain(field: str, argument: object) -> Leaf:
    wanted = domain_of(field, text_of(field, argument))
    return Leaf("sender_domain", argument, lambda seen: seen.domain == wanted, (("domain", wanted),))


def _to(field: str, argument: object) -> Leaf:
    wanted = _wanted("to", field, argument)
    if wanted.startswith("@"):
        return Leaf(
            "to", argument, lambda seen: any(each.endswith(wanted) for each in seen.message.to), (("to", wanted),)
        )
    return Leaf("to", argument, lambda seen: wanted in seen.message.to, (("to", wanted),))


def _in_addresses(kind: str) -> Read:
    def read(field: str, argument: object) -> Leaf:
        wanted = _wanted(kind, field, argument)
        if wanted.startswith("@"):

            def test(seen: Seen) -> bool:
                return any(each.endswith(wanted) for each in seen.addresses[kind])

        else:

            def test(seen: Seen) -> bool:
                return wanted in seen.addresses[kind]

        return Leaf(kind, argument, test, ((kind, wanted),))

    return read


def _wanted(kind: str, field: str, argument: object) -> str:
    """The canonical address, or the domain with an @ before it."""
    text = text_of(field, argument).strip()
    if text.startswith("@"):
        return f"@{domain_of(field, text)}"
    wanted = canonical(text)
    if wanted is None:
        remedy = "write ida@shop.example, or @shop.example for a whole domain"
        if f"{kind}_me" in LEAVES and text.lower() == "me":
            remedy = f"write `{kind}_me: true` for your own addresses"
        elif f"{kind}_words" in NAMED:
            remedy += f"; for a name use {kind}_words"
        raise BrokenRule(field, "is not an address", remedy)
    return wanted


NAMED = frozenset({"from_words", "to_words", "cc_words", "bcc_words", "reply_to_words"})


def _own(kind: str, found: Callable[[Seen], frozenset[str] | tuple[str, ...]]) -> Read:
    """Whether one of the user's own addresses is there."""

    def read(field: str, argument: object) -> Leaf:
        wanted = yes_or_no(field, argument)

        def test(seen: Seen) -> bool:
            own = seen.message.own_addresses or frozenset()
            return any(each in own for each in found(seen)) is wanted

        return Leaf(kind, argument, test)

    return read


def _known(kind: str, fact: Callable[[MessageFacts], bool | None]) -> Read:
    def read(field: str, argument: object) -> Leaf:
        wanted = yes_or_no(field, argument)
        return Leaf(kind, argument, lambda seen: fact(seen.message) is wanted)

    return read


LEAVES: Mapping[str, Read] = {
    "sender_email": _sender_email,
    "sender_domain": _sender_domain,
    "to": _to,
    **{kind: _in_addresses(kind) for kind in ADDRESS_KINDS},
    "from_me": _own("from_me", lambda seen: seen.addresses["from"]),
    "to_me": _own("to_me", lambda seen: seen.message.to),
    "cc_me": _own("cc_me", lambda seen: seen.addresses["cc"]),
    "bcc_me": _own("bcc_me", lambda seen: seen.addresses["bcc"]),
    "sender_in_contacts": _known("sender_in_contacts", lambda facts: facts.sender_in_contacts),
    "sender_seen_before": _known("sender_seen_before", lambda facts: facts.sender_seen_before),
    "reply_to_mine": _known("reply_to_mine", lambda facts: facts.reply_to_mine),
}
