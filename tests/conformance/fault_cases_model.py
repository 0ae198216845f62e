"""For each writing verb of the model's calls: a database in which it has something to do."""

from typing import Any

from conformance.desk import Desk
from conformance.fault_cases_inbox import ENDPOINT, leased_mail
from conformance.fault_cases_jobs import Case
from postroom.core.mail.message import read_mail
from postroom.store import mail, model_calls
from postroom.store.engine.database import Transaction
from postroom.store.engine.ids import new_id
from postroom.store.model_calls import CallEnd, Caps, NewCall

CAPS = Caps(day_micros=1_000_000, message_micros=50_000)


async def new_call(desk: Desk, reserve_micros: int = 10_000) -> NewCall:
    """About a message that was stored for it."""
    account = await desk.database.run(mail.keep_account(new_id(), "gmail", ENDPOINT, "me@example.com", desk.clock()))
    leased, message_id = await leased_mail(desk), new_id()
    content, classify = read_mail(leased.envelope), desk.new(key=f"classify:{message_id}")
    await desk.database.run(
        mail.store_message(leased, account, (new_id(), message_id), content, lambda _id: classify, desk.clock())
    )
    return NewCall(new_id(), account.id, message_id, "openai", "gpt-test", "1-test", reserve_micros)


async def started(desk: Desk) -> NewCall:
    call = await new_call(desk)
    await desk.database.run(model_calls.reserve_call(call, CAPS, desk.clock()))
    return call


async def reserve_call(desk: Desk) -> Transaction[Any]:
    return model_calls.reserve_call(await new_call(desk), CAPS, desk.clock())


async def end_call(desk: Desk) -> Transaction[Any]:
    call = await started(desk)
    end = CallEnd("answered", input_tokens=900, output_tokens=50, cost_micros=1_200, latency_ms=800)
    return model_calls.end_call(call.id, end, desk.clock())


async def fail_left_calls(desk: Desk) -> Transaction[Any]:
    await started(desk)
    return model_calls.fail_left_calls(desk.clock.forward(3600))


CASES: list[Case] = [reserve_call, end_call, fail_left_calls]
