"""For each writing verb of the model's calls: a database in which it has something to do."""

from dataclasses import replace
from typing import Any

from postroom.core.budget_shares import BudgetShares, Spender
from postroom.core.mail.message import read_mail
from postroom.store.actions import model_calls
from postroom.store.actions.model_calls import CallEnd, Caps, NewCall
from postroom.store.engine.database import Transaction
from postroom.store.engine.ids import new_id
from postroom.store.mail import mail
from support import storing
from support.store.fault_cases_inbox import ENDPOINT, leased_mail
from support.store.fault_cases_jobs import Case
from support.store.job_setup import JobSetup

CAPS = Caps(day_micros=1_000_000, message_micros=50_000)


async def new_call(setup: JobSetup, reserved_micros: int = 10_000) -> NewCall:
    """About a message that was stored for it."""
    account = await setup.database.run(mail.keep_account(new_id(), "gmail", ENDPOINT, "me@example.com", setup.clock()))
    leased, message_id = await leased_mail(setup), new_id()
    content, classify = read_mail(leased.envelope), setup.new(key=f"classify:{message_id}")
    await setup.database.run(
        storing.store_message(leased, account, (new_id(), message_id), content, lambda _id: classify, setup.clock())
    )
    return NewCall(new_id(), account.id, message_id, "openai", "gpt-test", "1-test", reserved_micros)


async def started(setup: JobSetup) -> NewCall:
    call = await new_call(setup)
    await setup.database.run(model_calls.reserve_call(call, CAPS, setup.clock()))
    return call


async def reserve_call(setup: JobSetup) -> Transaction[Any]:
    spender = Spender.of("ann@shop.example", "default")
    call = replace(await new_call(setup), spender=spender)
    return model_calls.reserve_call(call, replace(CAPS, shares=BudgetShares()), setup.clock())


async def end_call(setup: JobSetup) -> Transaction[Any]:
    call = await started(setup)
    end = CallEnd("answered", input_tokens=900, output_tokens=50, cost_micros=1_200, latency_ms=800)
    return model_calls.end_call(call.id, end, setup.clock())


async def fail_left_calls(setup: JobSetup) -> Transaction[Any]:
    await started(setup)
    return model_calls.fail_left_calls(setup.clock.forward(3600))


async def forget_shares(setup: JobSetup) -> Transaction[Any]:
    spender, caps = Spender.of("ann@shop.example", "default"), replace(CAPS, shares=BudgetShares(sender=0.0))
    made = await new_call(setup)
    for _ in range(2):
        call = replace(made, id=new_id(), spender=spender)
        await setup.database.run(model_calls.reserve_call(call, caps, setup.clock()))
        await setup.database.run(model_calls.end_call(call.id, CallEnd("answered", cost_micros=9), setup.clock()))
    return model_calls.forget_shares(setup.clock.forward(9 * 86_400))


CASES: list[Case] = [reserve_call, end_call, fail_left_calls, forget_shares]
