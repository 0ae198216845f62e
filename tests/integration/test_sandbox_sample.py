"""The sample mailbox, and the mail that keeps arriving in it."""

import asyncio
import re
from collections import Counter
from datetime import UTC, datetime
from itertools import islice
from random import Random

import pytest

from postroom_sandbox.correspondents import OWNER
from postroom_sandbox.drip import drip
from postroom_sandbox.mailbox import Mailbox
from postroom_sandbox.mime import Mail
from postroom_sandbox.raw_mail import SampleMail
from postroom_sandbox.sample import arrivals, fill_sample, sample_mail

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
SEEDS = [1, 2, 3]


@pytest.fixture(params=SEEDS)
def sample(request: pytest.FixtureRequest) -> list[SampleMail]:
    print(f"seed {request.param}")
    return sample_mail(request.param, NOW)


@pytest.fixture
def mailbox() -> Mailbox:
    return Mailbox(OWNER.address, Random(1), clock=lambda: NOW)


def having(sample: list[SampleMail], header: str, value: str = "") -> list[SampleMail]:
    return [
        message for message in sample if value in Mail(message.raw).header(header) and Mail(message.raw).header(header)
    ]


def test_the_same_seed_gives_the_same_mail(sample: list[SampleMail], request: pytest.FixtureRequest) -> None:
    seed = request.node.callspec.params["sample"]
    assert sample_mail(seed, NOW) == sample
    assert sample_mail(seed + 1, NOW) != sample


def test_only_reserved_domains_are_used(sample: list[SampleMail]) -> None:
    addresses = Counter(re.findall(rb"@([a-z0-9.-]+)", b"".join(message.raw for message in sample)))
    reserved = re.compile(rb"(.+\.)?(example|example\.(com|org|net))")
    assert [domain for domain in addresses if not reserved.fullmatch(domain)] == []
    assert len(addresses) > 15


def test_the_sample_has_every_kind_of_mail(sample: list[SampleMail]) -> None:
    assert 55 <= len(sample) <= 75
    assert len(having(sample, "List-Unsubscribe", "http")) >= 10
    assert len(having(sample, "Precedence", "list")) >= 5
    assert len(having(sample, "Subject", "receipt")) >= 5
    assert len(having(sample, "Subject", "parcel")) >= 5
    assert len(having(sample, "From", "praxis-amsel.example")) == 2
    assert sum(b"text/calendar" in message.raw for message in sample) >= 3
    assert sum(Mail(message.raw).has_attachment for message in sample) >= 2
    for charset in (b"iso-2022-jp", b"koi8-r", b"iso-8859-1", b"windows-1252"):
        assert any(b"=?" + charset in message.raw for message in sample), charset


def test_every_message_is_pure_ascii_on_the_wire_with_readable_text_inside(sample: list[SampleMail]) -> None:
    for message in sample:
        mail = Mail(message.raw)
        assert message.raw.partition(b"\r\n\r\n")[0].isascii()
        assert mail.text
        assert "\ufffd" not in mail.text + mail.header("Subject") + mail.header("From")


def test_answers_lie_in_the_thread_of_what_the_owner_sent(mailbox: Mailbox) -> None:
    fill_sample(mailbox, seed=5)
    sent = {message.thread_id for message in mailbox.search("in:sent")}
    answers = list(mailbox.search('subject:"Re: "'))
    assert len(sent) == 5
    assert len(answers) == 5
    assert {answer.thread_id for answer in answers} <= sent


def test_a_filled_mailbox_has_read_unread_and_filed_mail(mailbox: Mailbox) -> None:
    fill_sample(mailbox, seed=5)
    unread, read = list(mailbox.search("in:inbox is:unread")), list(mailbox.search("in:inbox is:read"))
    assert unread
    assert read
    assert list(mailbox.search("label:receipts"))
    assert len(list(mailbox.search("in:spam"))) == 1


def test_arrivals_never_end_and_never_repeat_a_message_id() -> None:
    seed = 9
    print(f"seed {seed}")
    arrived = list(islice(arrivals(Random(seed), lambda: NOW), 500))
    assert len({Mail(message.raw).header("Message-ID") for message in arrived}) == 500
    assert len({Mail(message.raw).header("From") for message in arrived}) > 20


async def test_the_drip_delivers_one_message_after_each_pause(mailbox: Mailbox) -> None:
    pauses: list[tuple[float, int]] = []

    async def sleep(seconds: float) -> None:
        pauses.append((seconds, len(mailbox)))

    await drip(mailbox, islice(arrivals(Random(3), lambda: NOW), 3), every_seconds=4, sleep=sleep)
    assert len(mailbox) == 3
    assert pauses == [(4, 0), (4, 1), (4, 2), (4, 3)]


async def test_the_drip_ends_when_the_mailbox_is_full(mailbox: Mailbox) -> None:
    async def sleep(_seconds: float) -> None:
        assert len(mailbox) < full

    full = len(mailbox) + 2
    await drip(mailbox, arrivals(Random(3), lambda: NOW), sleep=sleep, full=full)
    assert len(mailbox) == full


async def test_the_drip_stops_when_it_is_cancelled(mailbox: Mailbox) -> None:
    waiting = asyncio.Event()

    async def sleep(seconds: float) -> None:
        waiting.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(drip(mailbox, arrivals(Random(3), lambda: NOW), sleep=sleep))
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(mailbox) == 0
