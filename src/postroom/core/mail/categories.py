"""The categories of mail that a backfill can fetch: a search at the provider, and a check of each message.

The search is broad, so that little is missed; the check decides. A message may be in several categories, or in none.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from postroom.core.errors import BadInput
from postroom.core.mail.headers import values
from postroom.core.mail.ingestion import IngestionFacts
from postroom.core.mail.tiers import Known, addressed_to_user, is_bulk
from postroom.core.suggestions import did_you_mean

_MACHINES = re.compile(
    r"(?<![a-z])(?:(?:no|do[._-]?not|never)[._-]?reply|mailer-daemon|postmaster|bounces?|notifications?|newsletters?"
    r"|alerts?|updates?)(?![a-z])"
)


@dataclass(frozen=True, slots=True)
class Category:
    """A category, by `words` in the subject and `domains` of senders, or by a `check` where those do not suffice."""

    name: str
    words: tuple[str, ...] = ()
    domains: tuple[str, ...] = ()
    search: str = ""
    check: Callable[[IngestionFacts, Known], bool] | None = None

    def query(self, user_address: str) -> str:
        """The search in Gmail's syntax; a date range may be put before it."""
        if self.search:
            return self.search.format(user=user_address)
        return " OR ".join([f'subject:"{word}"' for word in self.words] + [f"from:{domain}" for domain in self.domains])

    def holds(self, facts: IngestionFacts, known: Known) -> bool:
        """Whether the message is in the category."""
        if self.check is not None:
            return self.check(facts, known)
        domain = facts.domain
        if any(domain == each or domain.endswith(f".{each}") for each in self.domains):
            return True
        return any(_WORDS[self.name].search(subject) for subject in values(facts.headers, "subject"))


def _relationship(facts: IngestionFacts, known: Known) -> bool:
    """Whether it is from a known contact, or from a person to the user: in To, not bulk, and not from a program."""
    if facts.sender in known.contacts:
        return True
    local = facts.sender.partition("@")[0]
    if not local or _MACHINES.search(local) or values(facts.headers, "auto-submitted") not in ([], ["no"]):
        return False
    return not is_bulk(facts.headers) and addressed_to_user(facts.headers, known)


def _newsletters(facts: IngestionFacts, _known: Known) -> bool:
    return is_bulk(facts.headers) or bool(values(facts.headers, "list-id"))


CATEGORIES: dict[str, Category] = {
    category.name: category
    for category in (
        Category(
            "finance",
            words=(
                *("invoice", "receipt", "payment", "paid", "refund", "bank statement", "account statement", "tax"),
                *("order confirmation", "billing", "transaction", "payslip", "mortgage", "insurance"),
                *("Rechnung", "Zahlung", "Quittung", "Kontoauszug", "Steuer", "facture", "factura"),
            ),
            domains=("paypal.com", "stripe.com", "wise.com", "intuit.com", "americanexpress.com"),
        ),
        Category(
            "health",
            words=(
                *("doctor", "appointment", "prescription", "lab results", "test results", "vaccination", "clinic"),
                *("hospital", "dentist", "patient", "medical", "pharmacy", "health insurance"),
                *("Arzttermin", "Befund", "Rezept", "Krankenkasse", "ordonnance"),
            ),
            domains=("mychart.com", "zocdoc.com", "doctolib.de", "doctolib.fr"),
        ),
        Category(
            "relationship",
            search="to:{user} -from:noreply -from:no-reply -from:donotreply -from:notifications",
            check=_relationship,
        ),
        Category(
            "travel",
            words=(
                *("itinerary", "booking", "reservation", "boarding pass", "flight", "hotel", "check-in", "e-ticket"),
                *("train ticket", "car rental", "your trip", "Buchung", "Flug", "Reiseplan", "Fahrkarte"),
            ),
            domains=("booking.com", "airbnb.com", "expedia.com", "tripit.com", "bahn.de", "lufthansa.com"),
        ),
        Category("newsletters", search="unsubscribe", check=_newsletters),
    )
}
_WORDS = {
    name: re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, category.words))})(?!\w)", re.IGNORECASE)
    for name, category in CATEGORIES.items()
    if category.words
}


def categories_of(facts: IngestionFacts, known: Known) -> list[str]:
    """The names of the categories that the message is in, in fixed order."""
    return [name for name, category in CATEGORIES.items() if category.holds(facts, known)]


def chosen_categories(names: Sequence[str], field: str = "category") -> list[Category]:
    """The categories with these names. Raises BadInput for one that does not exist."""
    for name in names:
        if name not in CATEGORIES:
            remedy = did_you_mean(name, CATEGORIES, f"use {', '.join(CATEGORIES)}")
            raise BadInput(field, f"{name[:80]!r} is unknown", remedy)
    return [CATEGORIES[name] for name in dict.fromkeys(names)]
