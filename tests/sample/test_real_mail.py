"""Real mail from end to end: `make sample MAIL=folder` gives the folder; every file in it is one message."""

import os
from pathlib import Path

import pytest

from integration.product import running_product
from postroom.sandbox.mailbox import Mailbox
from postroom.store.database import Database


def messages() -> list[Path]:
    folder = os.environ.get("POSTROOM_SAMPLE_MAIL")
    if not folder:
        pytest.fail("name a folder of messages: make sample MAIL=folder")
    return sorted(path for path in Path(folder).rglob("*") if path.is_file())


async def test_every_real_message_reaches_a_decision(database: Database, tmp_path: Path) -> None:
    paths = messages()

    def deliver(mailbox: Mailbox) -> None:
        for path in paths:
            mailbox.deliver(path.read_bytes())

    async with running_product(database, tmp_path, prepare=deliver, patience_s=300) as product:
        await product.rule("lists", {"header_match": {"name": "List-Id"}}, "archive")
        await product.rule("questions", {"subject_contains": "?"}, "apply_label", label="Questions")
        assert await product.live.sync() == len(paths)
        rows = await product.settled(len(paths))
    failed = [row.action_error for row in rows if row.action_state == "failed"]
    assert not failed
    tiers = {tier: sum(row.tier == tier for row in rows) for tier in {row.tier for row in rows}}
    acted = sum(row.action_state == "completed" for row in rows)
    print(f"\n{len(rows)} messages decided, {acted} acted on, by tier: {tiers}")
