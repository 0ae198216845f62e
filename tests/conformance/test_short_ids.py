"""People name a job or an outgoing mail by the last digits of its id, as lists show them."""

import re
from collections.abc import Awaitable, Callable
from uuid import UUID

import pytest

from postroom.core.errors import BadInput, NotFound
from postroom.core.short_ids import part_of_id, short_id
from postroom.operations.jobs.jobs import JOB
from postroom.operations.operation import FoundBy
from postroom.operations.outbound.outbound import OUTGOING
from postroom.store.engine.ids import new_id
from postroom.store.outbound.outbound import list_mail
from postroom.store.short_ids import ids_of_part
from support.smtp_sending import SmtpSending
from support.store.job_setup import JobSetup

Make = Callable[[JobSetup], Awaitable[UUID]]


async def make_job(setup: JobSetup) -> UUID:
    return (await setup.enqueue()).id


async def make_mail(setup: JobSetup) -> UUID:
    await SmtpSending(setup.database, setup.clock).put("ada@d1.example")
    return (await setup.database.run(list_mail(1, None)))[0].id


@pytest.mark.parametrize(("make", "found_by"), [(make_job, JOB), (make_mail, OUTGOING)])
async def test_some_digits_are_enough(setup: JobSetup, make: Make, found_by: FoundBy) -> None:
    others = [await make(setup) for _ in range(3)]
    id = await make(setup)
    for name in (short_id(id), short_id(id)[:7], short_id(id, 12), str(id), str(id).upper(), id.hex[:30]):
        assert await found_by.find(setup.database, name) == id
    assert id not in others
    with pytest.raises(NotFound, match=r"list` lists them; with --json"):
        await found_by.find(setup.database, "0" * 12)
    with pytest.raises(BadInput, match="at least 4 digits"):
        await found_by.find(setup.database, "abc")


async def test_digits_of_several_are_refused_with_more_that_tell_them_apart(setup: JobSetup) -> None:
    made = [await make_job(setup)]
    while len([each for each in made if each.hex[:9] == made[-1].hex[:9]]) < 3:
        made.append(await make_job(setup))
    start = made[-1].hex[:9]  # the time, which the last three share
    with pytest.raises(BadInput, match=r"is part of 3 ids; give more of it: \w{8}, \w{8}, \w{8}") as refused:
        await JOB.find(setup.database, start)
    shown = re.findall(r"\b\w{8}\b", str(refused.value).partition("of it:")[2])
    assert [await JOB.find(setup.database, each) for each in shown] == sorted(made[-3:])


async def test_a_whole_id_is_not_looked_for(setup: JobSetup) -> None:
    id = new_id()
    assert await JOB.find(setup.database, str(id)) == id


async def test_a_failed_job_is_found_behind_newer_ones(setup: JobSetup) -> None:
    failed = await setup.claimed()
    await setup.fail(failed, "no")
    await make_job(setup)
    assert await JOB.find(setup.database, short_id(failed.id)) == failed.id
    part = part_of_id(short_id(failed.id))
    assert part is not None
    assert await setup.database.run(ids_of_part("jobs", part)) == [failed.id]
