"""Beyond a number of notices an hour, one digest says how many actions wait."""

import json
from uuid import UUID

from postroom.core.jobs.job import Job
from support.approval_setup import pending
from support.webhook_receiver import Receiver

HOURLY = 3


async def _asked(receiver: Receiver, count: int) -> list[UUID]:
    """So many actions wait, and the job of each has run."""
    ids: list[UUID] = []
    for number in range(count):
        id = await pending(receiver.setup, "apply_label", {"label": f"L{number}"}, actor="model")
        await receiver.setup.notify(id, [receiver.channel], hourly=HOURLY)
        ids.append(id)
    return ids


async def _digests(receiver: Receiver) -> list[Job]:
    await receiver.setup.wake_due()
    return [each for each in await receiver.setup.claim() if "digest" in each.payload]


async def _tell_digest(receiver: Receiver) -> None:
    (job,) = await _digests(receiver)
    await receiver.setup.run_notify(job, [receiver.channel], HOURLY)
    await receiver.setup.finish(job)


def _events(receiver: Receiver) -> list[str]:
    return [json.loads(body)["event"] for _, body in receiver.taken]


async def test_beyond_the_cap_one_digest_tells_how_many_wait_on_the_hour(receiver: Receiver) -> None:
    await _asked(receiver, 12)
    assert _events(receiver) == ["approval.asked"] * HOURLY
    assert await _digests(receiver) == [], "not before the hour is over"
    receiver.setup.clock.forward(3600)
    await _tell_digest(receiver)
    headers, body = receiver.taken[-1]
    told = json.loads(body)
    assert (told["event"], headers["idempotency-key"]) == ("approval.digest", told["id"])
    assert told["what"] == (
        "9 more actions wait for your answer (9 apply_label by the model, mail of 1 sender). "
        "`postroom approvals list` shows them."
    )
    assert len(receiver.taken) == HOURLY + 1


async def test_the_next_hour_has_notices_of_its_own_and_at_most_one_digest(receiver: Receiver) -> None:
    await _asked(receiver, 5)
    receiver.setup.clock.forward(3600)
    await _tell_digest(receiver)
    await _asked(receiver, 7)
    receiver.setup.clock.forward(3600)
    await _tell_digest(receiver)
    assert _events(receiver).count("approval.asked") == 2 * HOURLY
    assert _events(receiver).count("approval.digest") == 2


async def test_a_digest_is_not_sent_when_nothing_waits_any_more(receiver: Receiver) -> None:
    ids = await _asked(receiver, 5)
    for id in ids:
        await receiver.setup.reject(id)
    receiver.setup.clock.forward(3600)
    await _tell_digest(receiver)
    assert "approval.digest" not in _events(receiver)


async def test_a_retry_of_a_notice_does_not_count_twice(receiver: Receiver) -> None:
    id = await pending(receiver.setup, actor="model")
    for _ in range(HOURLY + 2):
        await receiver.setup.notify(id, [receiver.channel], hourly=HOURLY)
    assert await _digests(receiver) == []
