"""Whose share of the model's budget a call uses, and how large each share is."""

import pytest

from postroom.core.budget_shares import BudgetShares, Spender, organisation_of, shares_of, why_share_ended
from postroom.core.queue.envelope import PolicyTier


@pytest.mark.parametrize(
    ("domain", "organisation"),
    [
        ("shop.example", "shop.example"),
        ("a.b.shop.example", "shop.example"),
        ("mail.shop.co.uk", "shop.co.uk"),
        ("shop.de", "shop.de"),
        ("news.shop.de", "shop.de"),
        ("x.com.au", "x.com.au"),
        ("co.uk", "co.uk"),
        ("localhost", "localhost"),
        ("", ""),
    ],
)
def test_hosts_below_a_registered_domain_share_with_it(domain: str, organisation: str) -> None:
    assert organisation_of(domain) == organisation


@pytest.mark.parametrize(("tier", "cents"), [("default", 60), ("interactive", 80), ("high_priority", 100)])
def test_bulk_leaves_room_for_direct_mail_and_that_for_contacts(tier: PolicyTier, cents: int) -> None:
    found = {each.kind: each.cap_micros for each in shares_of(Spender.of("a@x.example", tier), BudgetShares(), 100)}
    assert found["tier"] == cents
    assert found["sender"] == 10
    assert found.get("domain") == (None if tier == "high_priority" else 25)


def test_answers_of_strangers_leave_what_is_kept_for_contacts() -> None:
    """The id of a letter to a list is public: anybody can answer it, under as many names as they like."""
    stranger = Spender.of("a@x.example", "high_priority", is_contact=False)
    assert stranger == Spender.of("a@x.example", "interactive")
    assert stranger.domain is not None
    assert Spender.of("a@x.example", "default", is_contact=False).tier == "default"


def test_what_others_send_under_a_contacts_address_uses_no_share_of_the_contact() -> None:
    assert Spender.of("Ann@x.example", "high_priority").sender != Spender.of("ann@x.example", "default").sender
    assert Spender.of("Ann@x.example", "default") == Spender.of("ann@X.example", "default")


def test_the_reason_says_which_share_ended_and_what_comes_next() -> None:
    for kind in ("sender", "domain", "tier"):
        assert "decided after midnight" in why_share_ended(kind, "default")
    assert "this sender's mail" in why_share_ended("sender", "default")
    assert "kept for contacts and mail written to you" in why_share_ended("tier", "default")
    assert "kept for your contacts" in why_share_ended("tier", "interactive")
