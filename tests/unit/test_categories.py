"""Categories of mail: a search for the provider, and a check of each message."""

from datetime import UTC, datetime

import pytest

from postroom.core.errors import BadInput
from postroom.core.mail.categories import CATEGORIES, categories_of, chosen_categories
from postroom.core.mail.ingestion import IngestionFacts
from postroom.core.mail.mime import parse_message
from postroom.core.mail.tiers import Known
from postroom_sandbox.query import parse_query

KNOWN = Known.of({"mara@x.example"}, {"ida@x.example"})


def categories(head: str) -> list[str]:
    return categories_of(IngestionFacts.of(parse_message(f"{head}\n\nHello".encode())), KNOWN)


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("Subject: Your invoice of May", ["finance"]),
        ("Subject: =?utf-8?q?INVOICE?=", ["finance"]),
        ("Subject: invoices galore", []),
        ("From: service@mail.paypal.com", ["finance"]),
        ("From: service@notpaypal.com", []),
        ("Subject: Appointment with Dr. Smith", ["health"]),
        ("Subject: Your boarding pass", ["travel"]),
        ("Subject: Receipt for your hotel booking", ["finance", "travel"]),
        ("From: ida@x.example", ["relationship"]),
        ("From: jo@y.example\nTo: mara@x.example", ["relationship"]),
        ("From: jo@y.example\nTo: other@x.example", []),
        ("From: no-reply@y.example\nTo: mara@x.example", []),
        ("From: jo@y.example\nTo: mara@x.example\nAuto-Submitted: auto-replied", []),
        ("From: jo@y.example\nTo: mara@x.example\nAuto-Submitted: no", ["relationship"]),
        ("From: jo@y.example\nTo: mara@x.example\nList-Unsubscribe: <x>", ["newsletters"]),
        ("List-Id: <x>", ["newsletters"]),
        ("Precedence: bulk", ["newsletters"]),
        ("Subject: hello", []),
    ],
)
def test_a_message_is_in_the_categories_it_belongs_to(head: str, expected: list[str]) -> None:
    assert categories(head) == expected


def test_there_are_the_five_packs() -> None:
    assert list(CATEGORIES) == ["finance", "health", "relationship", "travel", "newsletters"]


@pytest.mark.parametrize("name", CATEGORIES)
def test_the_search_is_one_that_the_emulated_provider_understands(name: str) -> None:
    query = CATEGORIES[name].query("mara@x.example")
    assert query
    parse_query(query, lambda label: label, datetime(2026, 1, 1, tzinfo=UTC))


def test_chosen_categories_are_given_once_each_in_the_order_asked() -> None:
    assert [each.name for each in chosen_categories(["travel", "finance", "travel"])] == ["travel", "finance"]


def test_an_unknown_category_is_refused_with_the_nearest() -> None:
    with pytest.raises(BadInput, match="did you mean 'finance'"):
        chosen_categories(["finances"])
    with pytest.raises(BadInput, match="use finance, health"):
        chosen_categories(["zzz"])
