"""Every command of the documents is run as it is written; blocks that cannot be are listed here, with the reason."""

import json
from collections.abc import Iterator

import pytest

from support.command import NO_SIGN_IN
from support.documents import DOCS, ROOT, Home, Setting, commands_in, content_of
from support.warm_start import ForkedProcess

PORT = "8025"
NEEDS_ROOT = "changes the machine"
NEEDS_GOOGLE = "needs a project at Google; its own test runs it against the emulator"
SETTINGS = {
    "docs/how-to/agents.md": Setting(),
    "docs/how-to/container.md": Setting(
        excepted=dict.fromkeys(("docker ", "sudo install"), "needs a container engine; test_image.py runs the image")
    ),
    "docs/how-to/service.md": Setting(
        excepted=dict.fromkeys(("sudo ", "loginctl enable-linger"), f"{NEEDS_ROOT}; test_service.py writes the units")
    ),
}
# Pages that a test of their own runs.
ELSEWHERE = {
    "docs/how-to/install.md": "test_install.py",
    "docs/tutorial/first-ten-minutes.md": "test_tutorial.py",
}
# Pages that do not run yet.
NOT_YET = {
    "README.md",
    "docs/develop/contributing.md",
    "docs/how-to/api.md",
    "docs/how-to/approvals.md",
    "docs/how-to/backfill.md",
    "docs/how-to/backup.md",
    "docs/how-to/connect-gmail.md",
    "docs/how-to/contacts.md",
    "docs/how-to/failed-jobs.md",
    "docs/how-to/filters.md",
    "docs/how-to/gmail-connector.md",
    "docs/how-to/http-producers.md",
    "docs/how-to/imap.md",
    "docs/how-to/import-rules.md",
    "docs/how-to/keys.md",
    "docs/how-to/monitoring.md",
    "docs/how-to/own-queue.md",
    "docs/how-to/postgresql.md",
    "docs/how-to/preview.md",
    "docs/how-to/redis.md",
    "docs/how-to/replay.md",
    "docs/how-to/retention.md",
    "docs/how-to/rules-as-code.md",
    "docs/how-to/safety.md",
    "docs/how-to/senders.md",
    "docs/how-to/shadow.md",
    "docs/how-to/sign-in.md",
    "docs/how-to/simulate.md",
    "docs/how-to/starter-rules.md",
    "docs/how-to/submit.md",
    "docs/how-to/tokens.md",
    "docs/how-to/undo.md",
    "docs/reference/categories.md",
    "docs/reference/cli.md",
    "docs/reference/delivery.md",
    "docs/reference/model.md",
    "docs/reference/outbound.md",
    "docs/reference/rules.md",
    "docs/reference/sandbox.md",
}
PAGES = {
    str(page.relative_to(ROOT)): page
    for page in sorted([ROOT / "README.md", *DOCS.rglob("*.md")])
    if "decisions" not in page.parts and commands_in(page)
}


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A home in which a demo is running, with the address of its pages."""
    folder = tmp_path_factory.mktemp("documents")
    home = Home(folder, NO_SIGN_IN)
    process = ForkedProcess(["demo", "--port", "0", "--json", "--data-dir", str(folder)], folder, home.environment)
    try:
        home.port = json.loads(process.stdout.readline())["url"].rpartition(":")[2].strip("/")
        home.environment["POSTROOM_DATA_DIR"] = str(folder / ".postroom-demo")
        for line in process.stderr:
            if "connector.looked_back" in line:
                break
        yield home
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("name", [name for name in PAGES if name not in {*ELSEWHERE, *NOT_YET}])
def test_the_commands_of_a_page_run_as_written(demo: Home, name: str) -> None:
    setting = SETTINGS.get(name, Setting())
    blocks = [each for each in commands_in(PAGES[name]) if not any(text in each for text in setting.excepted)]
    for file, text in setting.files.items():
        (demo.folder / file).write_text(content_of(PAGES[name], text))
    script = "\n".join([setting.before, *blocks])
    for text, meant in {PORT: demo.port, **setting.given}.items():
        script = script.replace(text, meant)
    demo.run(script)


def test_what_is_taken_for_granted_or_excepted_is_in_a_page() -> None:
    """Lest the lists above outlive the pages."""
    assert {*SETTINGS, *ELSEWHERE, *NOT_YET} <= set(PAGES)
    for name, setting in SETTINGS.items():
        blocks = commands_in(PAGES[name])
        assert [text for text in (*setting.given, *setting.excepted) if not any(text in each for each in blocks)] == []
