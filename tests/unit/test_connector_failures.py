"""A connector that cannot run says why and what to do once, not every half minute."""

from pathlib import Path

from structlog.testing import capture_logs

from postroom.compose.connector_failures import ELSEWHERE, RAN_WELL_S, REMEDY, ConnectorFailures
from postroom.core.errors import DatabaseUnavailable
from postroom.mailboxes.following.running import held_folder
from postroom.store.engine.ids import new_id


async def hold(folder: Path) -> None:
    with held_folder(folder):
        pass


async def test_that_another_process_has_the_mailbox_is_said_once_with_the_remedy(tmp_path: Path) -> None:
    failures, account, folder = ConnectorFailures(), new_id(), tmp_path / "connectors" / "gmail-ada@example.org"
    with held_folder(folder), capture_logs() as logged:
        for _ in range(3):
            await failures.run(account, hold(folder))
    first, *others = logged
    assert (first["log_level"], first["reason"], first["remedy"]) == ("warning", ELSEWHERE, REMEDY)
    assert [each["log_level"] for each in others] == ["debug", "debug"]
    assert "ada@example.org" not in str(logged)
    with capture_logs() as logged:
        await failures.run(account, hold(folder))
    assert logged == []


async def test_another_reason_and_one_after_a_long_run_are_said_again() -> None:
    now = [0.0]
    failures, account = ConnectorFailures(lambda: now[0]), new_id()

    async def fail(after_s: float) -> None:
        now[0] += after_s
        raise DatabaseUnavailable("away")

    with capture_logs() as logged:
        for after_s in (0.0, 1.0, RAN_WELL_S, 1.0):
            await failures.run(account, fail(after_s))
    assert [each["log_level"] for each in logged] == ["error", "debug", "error", "debug"]
    assert logged[0]["reason"] == "DatabaseUnavailable"
