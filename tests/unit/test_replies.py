"""Replies of servers: read within bounds, cleaned, and understood."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.core.outbound.bounce_classes import BounceClass
from postroom.core.outbound.replies import (
    LONGEST_TEXT,
    MOST_LINES,
    BadReply,
    Phase,
    Reply,
    ReplyLines,
    asked_wait,
    found_out,
    verdict,
)
from support.provider_replies import HELD_OUT, PROOFS, REPLIES, TUNED_ON, Proof, ProviderReply


def reply_in(text: str, phase: Phase = "rcpt") -> Reply:
    lines = ReplyLines.none_yet()
    ends = [lines.add(line) for line in text.encode().split(b"\n")]
    assert ends == [False] * (len(ends) - 1) + [True]
    return lines.reply("mx.example.org", phase)


@pytest.mark.parametrize("given", REPLIES, ids=lambda given: f"{given.provider}: {given.reply[:40]}")
def test_what_providers_say_is_understood(given: ProviderReply):
    found = verdict(reply_in(given.reply, given.phase))
    assert (found.result, found.bounce_class) == (given.result, given.bounce_class)


def test_the_enhanced_code_is_taken_out_of_every_line():
    reply = reply_in("550-5.1.1 No such\n550 5.1.1 user here")
    assert reply == Reply(550, "5.1.1", "No such user here", "mx.example.org", "rcpt")
    assert str(reply) == "mx.example.org: 550 5.1.1 No such user here"


def test_an_enhanced_code_that_contradicts_the_code_is_text():
    assert reply_in("450 5.1.1 hm") == Reply(450, None, "5.1.1 hm", "mx.example.org", "rcpt")


def test_success_has_no_class():
    assert verdict(reply_in("250 2.0.0 Ok: queued as 4C5", "content")) == ("sent", None, None)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"25",
        b"2500 Ok",
        b"abc def",
        b"150 early",
        b"650 late",
        b"250_Ok",
        b"HTTP/1.1 400 Bad Request",
        b"\x16\x03\x01",
    ],
)
def test_what_is_no_reply_is_refused(line: bytes):
    with pytest.raises(BadReply):
        ReplyLines.none_yet().add(line)


def test_a_reply_has_one_code():
    lines = ReplyLines.none_yet()
    lines.add(b"250-one")
    with pytest.raises(BadReply, match="began with 250 and went on with 550"):
        lines.add(b"550 two")


def test_a_reply_without_end_is_refused():
    lines = ReplyLines.none_yet()
    for _ in range(MOST_LINES):
        assert not lines.add(b"250-more")
    with pytest.raises(BadReply, match="more than"):
        lines.add(b"250-more")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("come back in 00:04:58", 298),
        ("come back in 04:58", 298),
        ("Greylisted for 5 minutes", 300),
        ("try again in 300 seconds", 300),
        ("please wait 30s", 30),
        ("retry in 2 hours", 7200),
        ("retry in 90000 hours", 86400),
        ("try later", None),
        ("queue id 5 minutes", None),
        ("in 0 seconds", None),
    ],
)
def test_the_wait_that_a_server_asks_for(text: str, seconds: int | None):
    assert asked_wait(text) == (None if seconds is None else timedelta(seconds=seconds))


@pytest.mark.parametrize(("enhanced", "result"), [("4.4.1", "deferred"), ("5.1.2", "bounced"), ("5.6.3", "rejected")])
def test_what_we_find_out_ourselves_follows_its_status(enhanced: str, result: str):
    assert verdict(found_out(enhanced, "x", "route")).result == result


@given(st.lists(st.binary(max_size=900).filter(lambda line: b"\n" not in line), min_size=1, max_size=20))
def test_text_of_strangers_is_one_printable_line(texts: list[bytes]):
    lines = ReplyLines.none_yet()
    for text in texts[:-1]:
        lines.add(b"550-" + text)
    assert lines.add(b"550 " + texts[-1])
    reply = lines.reply("mx", "rcpt")
    assert reply.text.isprintable()
    assert len(reply.text) <= LONGEST_TEXT
    assert verdict(reply).result in ("bounced", "rejected", "deferred")


@pytest.mark.parametrize(("name", "given"), [("tuned on", TUNED_ON), ("held out", HELD_OUT)])
def test_at_least_95_of_100_replies_are_told_apart_as_proof_or_not(name: str, given: list[ProviderReply]):
    """The half that was not tuned on is the one that counts. Nothing is falsely taken for proof in either."""
    found = [verdict(reply_in(each.reply, each.phase)) for each in given]
    hard = [
        (each.bounce_class is BounceClass.HARD, true.bounce_class == "hard")
        for each, true in zip(found, given, strict=True)
    ]
    assert sum(said == true for said, true in hard) >= 0.95 * len(given), name
    assert [true.reply for (said, is_so), true in zip(hard, given, strict=True) if said and not is_so] == []
    right = sum(each.bounce_class == true.bounce_class for each, true in zip(found, given, strict=True))
    assert right >= 0.9 * len(given), name


def test_the_corpus_of_replies_is_large_and_its_halves_share_nothing():
    assert len(TUNED_ON) + len(HELD_OUT) >= 250
    assert not {(each.phase, each.reply) for each in TUNED_ON} & {(each.phase, each.reply) for each in HELD_OUT}


@pytest.mark.parametrize("name", ["spam", "blacklist", "unknown-user", "no.such.user", "quota"])
def test_the_name_of_the_recipient_decides_nothing(name: str):
    assert verdict(reply_in(f"550 <{name}@full.example>: denied")).bounce_class == "unexplained"
    assert verdict(reply_in(f"550 {name}@full.example... User unknown")).bounce_class == "hard"


def test_an_unknown_user_in_reply_to_mail_is_the_sender():
    assert verdict(reply_in("550 5.1.1 unknown user", "mail")).bounce_class == "policy"


@pytest.mark.parametrize("enhanced", ["5.4.4", "5.4.6", "5.4.0", "5.7.5", "5.3.5"])
def test_what_we_find_on_the_way_is_no_proof_against_an_address(enhanced: str):
    assert verdict(found_out(enhanced, "the way does not work", "route")).bounce_class != "hard"


@pytest.mark.parametrize("given", PROOFS, ids=lambda given: given.reply[:60])
def test_odd_replies_are_told_apart_as_proof_or_not(given: Proof):
    assert (verdict(reply_in(given.reply, given.phase)).bounce_class is BounceClass.HARD) == given.is_proof
