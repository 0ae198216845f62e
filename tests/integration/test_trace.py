"""One trace from the envelope to the change in the mailbox, and nothing of the mail in it."""

from pathlib import Path

from postroom.intake.intake import Intake
from postroom.store.engine.database import Database
from support.product import envelope, raw_mail, running_product
from support.spans import above, place, recorded_spans

GIVEN = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
CANARIES = ("Kanarienvogel", "kanarie@store.example")


async def test_the_trace_of_an_envelope_reaches_the_mailbox(database: Database, tmp_path: Path) -> None:
    with recorded_spans() as spans:
        async with running_product(database, tmp_path) as product:
            await product.rule("receipts", {"subject_contains": CANARIES[0]}, "apply_label", label="Receipts")
            message = product.mailbox.deliver(raw_mail(f"{CANARIES[0]} receipt", sender=CANARIES[1]))
            headers = [["Subject", f"{CANARIES[0]} receipt"], ["From", CANARIES[1]]]
            given = envelope(message.id, {"headers": headers})
            given["sender"] = {"identity": CANARIES[1]}
            given["control"] = {"trace_context": {"traceparent": GIVEN}}
            await Intake(database, None).ingest(given)
            (row,) = await product.settled(1)
            assert row.action_state == "completed"
    classify, action = spans["job classify"], spans["job action.gmail"]
    of_the_trace = {each.name for each in spans.all if place(each).startswith(GIVEN[:36])}
    assert {"ingest", "dispatch", "job classify", "job action.gmail"} < of_the_trace
    assert (above(spans["ingest"]), above(spans["dispatch"])) == (GIVEN, place(spans["ingest"]))
    assert (above(classify), above(action)) == (place(spans["dispatch"]), place(classify))
    calls = [each for each in spans.all if each.name.startswith("gmail ")]
    assert {each.name for each in calls} == {"gmail labels", "gmail create_label", "gmail labels_of", "gmail modify"}
    assert {above(each) for each in calls} == {place(action)}
    told = "".join(each.to_json() for each in spans.all)
    assert not [canary for canary in (*CANARIES, message.id, "Receipts") if canary in told]
