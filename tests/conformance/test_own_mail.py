"""Own mail that is stored, since it came before or from another connector: neither rules nor the model act on it."""

from postroom.core.actions.safety import Policy
from postroom.core.rules.draft import RuleDraft
from postroom.core.rules.rulebook import Rulebook
from postroom.operations.preview.preview import NO_RESTRAINTS
from postroom.operations.preview.preview_rules import rules_of
from postroom.store.mail.mail import load_message
from postroom.triage.decide.engine import apply_rules
from postroom.triage.decide.simulate import SimulatedRules, SimulationContext
from support.store.job_setup import JobSetup
from support.store.mail_setup import OWNER, MailSetup, Sample


async def test_own_mail_that_was_stored_before_is_not_decided_again(setup: JobSetup) -> None:
    box = await MailSetup(setup).opened()
    trash = RuleDraft("lists", {"to": "friends@lists.example"}, "trash")
    await box.rules(trash)
    listed = {"To": "friends@lists.example"}
    decided = await box.decide(
        Sample("own", OWNER, headers=listed),
        Sample("forged", OWNER, headers=listed, sender_doubt="failed"),
        Sample("other", headers=listed),
    )
    assert [(each.action_type, each.rationale == "you sent it") for each in decided] == [
        ("none", True),
        ("trash", False),
        ("trash", False),
    ]
    context = SimulationContext(NO_RESTRAINTS, {}, Policy(), has_model=True)
    simulated, book = SimulatedRules(rules_of([trash]), context), Rulebook(rules_of([trash]))
    foreseen: list[str] = []
    for name in ("own", "forged", "other"):
        message = await setup.database.run(load_message(box.ids[name]))
        foreseen.append(simulated.decide(message, apply_rules(message, book, setup.clock()), setup.clock()).action_type)
    assert foreseen == ["none", "trash", "trash"]
