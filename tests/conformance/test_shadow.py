"""The evidence for leaving shadow mode: which decisions count, and for what."""

from postroom.core.rules.draft import RuleDraft
from postroom.core.rules.model_decision import ModelDecision
from postroom.operations.caller import Caller
from postroom.operations.rules.shadow import ShadowScope, begin, end, list_shadows, report_on
from postroom.store.mail.mail import StoredMessage
from postroom.store.rules.shadow_reports import Tally
from postroom.triage.decide.engine import Advice
from support.store.fault_cases_registry import signed
from support.store.job_setup import JobSetup
from support.store.mail_setup import MailSetup, Sample

DARK = RuleDraft("dark", {"sender_domain": "shop.example"}, "archive", shadow=True)
FLIGHT = "Your flight"
TRAVEL, MODEL = ShadowScope("category", "travel"), ShadowScope("model")


class Archiving:
    """A model that archives everything."""

    async def advise(self, message: StoredMessage) -> Advice:
        return Advice(ModelDecision("archive", {}, 1.0, "not needed", False), "a-model", "1")


async def compared(mail_setup: MailSetup, *letters: Sample) -> None:
    """Decided on, and then archived by the user."""
    await mail_setup.decide(*letters)
    for letter in letters:
        await mail_setup.user(letter.id, remove="INBOX")


async def standing(setup: JobSetup) -> dict[str, Tally]:
    """As it is listed; and as each is reported, which is the same."""
    found = {each.name or each.kind: each.tally for each in await list_shadows(setup.database)}
    for name, tally in found.items():
        what = {"travel": TRAVEL, "model": MODEL}.get(name, ShadowScope("rule", name))
        assert (await report_on(setup.database, what)).tally == tally
    return found


async def test_a_rule_is_judged_by_what_it_decided_as_it_stands_now(setup: JobSetup) -> None:
    mail_setup = await MailSetup(setup).opened()
    await mail_setup.rules(DARK)
    await compared(mail_setup, Sample("a"), Sample("b"))
    assert await standing(setup) == {"dark": Tally(2, 2, 0)}
    setup.clock.forward(60)
    await mail_setup.rules(RuleDraft("dark", {"sender_domain": "shop.example"}, "trash", shadow=True))
    assert await standing(setup) == {"dark": Tally()}
    await compared(mail_setup, Sample("c"))
    await mail_setup.decide(Sample("d"))
    assert await standing(setup) == {"dark": Tally(2, 0, 1)}
    report = await report_on(setup.database, ShadowScope("rule", "dark"))
    assert ([each.action for each in report.disagreed], report.agreed) == (["trash"], ())


async def test_a_category_answers_for_what_is_in_shadow_because_of_it_alone(setup: JobSetup) -> None:
    mail_setup = await MailSetup(setup).opened()
    await mail_setup.rules(DARK, RuleDraft("all", {"has_attachment": False}, "archive", priority=900))
    await begin(Caller(setup.database, signed(), setup.clock), TRAVEL)
    await compared(mail_setup, Sample("a", subject=FLIGHT), Sample("b", "x@y.example", FLIGHT))
    assert await standing(setup) == {"dark": Tally(1, 1, 0), "travel": Tally(2, 2, 0)}
    [_, sample] = (await report_on(setup.database, TRAVEL)).agreed
    assert sample.rule_name == "all"


async def test_what_was_decided_in_an_earlier_shadow_does_not_count_again(setup: JobSetup) -> None:
    mail_setup = await MailSetup(setup).opened()
    await mail_setup.rules(RuleDraft("all", {"has_attachment": False}, "archive"))
    await begin(Caller(setup.database, signed(), setup.clock), TRAVEL)
    await compared(mail_setup, Sample("a", subject=FLIGHT))
    setup.clock.forward(60)
    await end(Caller(setup.database, signed(), setup.clock), TRAVEL)
    assert (await report_on(setup.database, TRAVEL)).tally == Tally(1, 1, 0), "it can still be looked at"
    setup.clock.forward(60)
    await begin(Caller(setup.database, signed(), setup.clock), TRAVEL)
    assert await standing(setup) == {"travel": Tally()}


async def test_the_model_answers_for_what_it_decided_while_it_was_itself_in_shadow(setup: JobSetup) -> None:
    mail_setup = await MailSetup(setup, adviser=Archiving()).opened()
    await begin(Caller(setup.database, signed(), setup.clock), TRAVEL)
    await compared(mail_setup, Sample("a", subject=FLIGHT))
    setup.clock.forward(60)
    await begin(Caller(setup.database, signed(), setup.clock), MODEL)
    await compared(mail_setup, Sample("b"), Sample("c", subject=FLIGHT))
    assert await standing(setup) == {"travel": Tally(1, 1, 0), "model": Tally(2, 2, 0)}
