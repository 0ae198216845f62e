"""The whole product in a real browser: mail arrives, is decided, acted on and seen, without a reload."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from support.command import NO_SIGN_IN

PATIENCE_MS = 120_000


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[str]:
    """`postroom demo` as its own process; yields the address."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("POSTROOM_")} | NO_SIGN_IN
    process = subprocess.Popen(
        [sys.executable, "-c", "from postroom.app import main; main()", "demo", "--port", "0", "--json"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["url"]
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE_MS / 1000)


async def test_mail_arrives_is_decided_and_acted_on_before_the_users_eyes(
    demo: str, page: Page, complaints: list[str]
) -> None:
    await page.goto(demo)
    await expect(page.locator("#link")).to_contain_text("Live", timeout=PATIENCE_MS)
    archived = page.locator("#lines tr", has_text="Newsletters out of the inbox").first
    await expect(archived).to_contain_text("archive", timeout=PATIENCE_MS)
    await expect(archived).to_contain_text("done", timeout=PATIENCE_MS)
    before = await page.locator("#lines tr").count()
    await expect(page.locator("#lines tr").nth(before)).to_be_visible(timeout=PATIENCE_MS)
    assert complaints == []
