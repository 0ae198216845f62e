"""The evidence for leaving the shadow: which of the decisions in shadow count, and for whom."""

from conformance.desk import Desk
from conformance.fault_cases_registry import signed
from conformance.mailroom import Letter, Mailroom
from postroom.core.rules.draft import RuleDraft
from postroom.core.rules.model_decision import ModelDecision
from postroom.decide.engine import Advice
from postroom.manage.shadow import ShadowScope, begin, end, in_shadow_now, report_on
from postroom.store.mail import StoredMessage
from postroom.store.shadow_reports import Tally

DARK = RuleDraft("dark", {"sender_domain": "shop.example"}, "archive", shadow=True)
FLIGHT = "Your flight"
TRAVEL, MODEL = ShadowScope("category", "travel"), ShadowScope("model")


class Archiving:
    """A model that archives everything."""

    async def advise(self, message: StoredMessage) -> Advice:
        return Advice(ModelDecision("archive", {}, 1.0, "not needed", False), "a-model", "1")


async def compared(room: Mailroom, *letters: Letter) -> None:
    """Decided on, and then archived by the user."""
    await room.decide(*letters)
    for letter in letters:
        await room.user(letter.id, remove="INBOX")


async def standing(desk: Desk) -> dict[str, Tally]:
    """As it is listed; and as each is reported, which is the same."""
    found = {each.name or each.kind: each.tally for each in await in_shadow_now(desk.database)}
    for name, tally in found.items():
        what = {"travel": TRAVEL, "model": MODEL}.get(name, ShadowScope("rule", name))
        assert (await report_on(desk.database, what)).tally == tally
    return found


async def test_a_rule_is_judged_by_what_it_decided_as_it_stands_now(desk: Desk) -> None:
    room = await Mailroom(desk).opened()
    await room.rules(DARK)
    await compared(room, Letter("a"), Letter("b"))
    assert await standing(desk) == {"dark": Tally(2, 2, 0)}
    desk.clock.forward(60)
    await room.rules(RuleDraft("dark", {"sender_domain": "shop.example"}, "trash", shadow=True))
    assert await standing(desk) == {"dark": Tally()}
    await compared(room, Letter("c"))
    await room.decide(Letter("d"))
    assert await standing(desk) == {"dark": Tally(2, 0, 1)}
    report = await report_on(desk.database, ShadowScope("rule", "dark"))
    assert ([each.action for each in report.disagreed], report.agreed) == (["trash"], ())


async def test_a_category_answers_for_what_is_in_shadow_because_of_it_alone(desk: Desk) -> None:
    room = await Mailroom(desk).opened()
    await room.rules(DARK, RuleDraft("all", {"has_attachment": False}, "archive", priority=900))
    await begin(desk.database, TRAVEL, signed(), desk.clock())
    await compared(room, Letter("a", subject=FLIGHT), Letter("b", "x@y.example", FLIGHT))
    assert await standing(desk) == {"dark": Tally(1, 1, 0), "travel": Tally(2, 2, 0)}
    [_, sample] = (await report_on(desk.database, TRAVEL)).agreed
    assert sample.rule_name == "all"


async def test_what_was_decided_in_an_earlier_shadow_does_not_count_again(desk: Desk) -> None:
    room = await Mailroom(desk).opened()
    await room.rules(RuleDraft("all", {"has_attachment": False}, "archive"))
    await begin(desk.database, TRAVEL, signed(), desk.clock())
    await compared(room, Letter("a", subject=FLIGHT))
    await end(desk.database, TRAVEL, signed(), desk.clock.forward(60))
    assert (await report_on(desk.database, TRAVEL)).tally == Tally(1, 1, 0), "it can still be looked at"
    await begin(desk.database, TRAVEL, signed(), desk.clock.forward(60))
    assert await standing(desk) == {"travel": Tally()}


async def test_the_model_answers_for_what_it_decided_while_it_was_itself_in_shadow(desk: Desk) -> None:
    room = await Mailroom(desk, adviser=Archiving()).opened()
    await begin(desk.database, TRAVEL, signed(), desk.clock())
    await compared(room, Letter("a", subject=FLIGHT))
    await begin(desk.database, MODEL, signed(), desk.clock.forward(60))
    await compared(room, Letter("b"), Letter("c", subject=FLIGHT))
    assert await standing(desk) == {"travel": Tally(1, 1, 0), "model": Tally(2, 2, 0)}
