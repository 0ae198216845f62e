"""Every command of the documents is run as it is written; blocks that cannot be are listed here, with the reason."""

import asyncio
import json
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from postroom.store.actions.actions import list_actions
from postroom.store.engine.opening import FILE
from postroom.store.engine.sqlite import SqliteDatabase
from support.command import NO_SIGN_IN
from support.documents import DOCS, ROOT, Home, Setting, commands_in, content_of
from support.until import until
from support.warm_start import ForkedProcess

PORT = "8025"
NEEDS_GOOGLE = "needs a project at Google; the emulator stands for it in tests of its own"
ASKS = "asks on a terminal; tests of its own answer"
NEEDS_ROOT = "changes the machine"
NEEDS_MACHINES = "needs two database servers; test_fail_over.py has them"
STANDS_FOR = "stands for what each reader has"
TOKEN = "export TOKEN=$(postroom token create --role {})\n"
RECEIPTS = """postroom rules show receipts ||
postroom rules add --name receipts --if '{"subject_words": "receipt"}' --then archive
"""
ACME = """postroom tenant add acme --domain acme.example --domain acme.test || true
postroom sender add ada@acme.example || true
"""
MBOX = """cat > all-mail.mbox <<'END'
From shop@store.example Mon Nov 16 08:00:00 2026
From: shop@store.example
To: mara@lindqvist.example
Subject: Your receipt
Date: Mon, 16 Nov 2026 08:00:00 +0000
Message-ID: <1@store.example>

Thank you.
END
"""
VCARD = """cat > contacts.vcf <<'END'
BEGIN:VCARD
VERSION:3.0
FN:Ida
EMAIL:ida@x.example
END:VCARD
END
"""
SETTINGS = {
    "README.md": Setting(
        excepted={"make run": "what CI does", "postroom init": "asks on a terminal; test_cli_init.py answers"}
    ),
    "docs/how-to/container.md": Setting(
        excepted=dict.fromkeys(("docker ", "sudo install"), "needs a container engine; test_image.py runs the image")
    ),
    "docs/how-to/service.md": Setting(
        excepted=dict.fromkeys(("sudo ", "loginctl enable-linger"), f"{NEEDS_ROOT}; test_service.py writes the units")
    ),
    "docs/how-to/api.md": Setting(
        given={"postroom_…          # as it was printed": "$(postroom token create --role admin)"},
        after="postroom resume --yes",
    ),
    "docs/how-to/approvals.md": Setting(
        excepted={"approvals show": "test_cli_approvals.py has actions that wait", "pip install": "installs packages"}
    ),
    "docs/how-to/backfill.md": Setting(
        excepted=dict.fromkeys(
            ("backfill estimate", "backfill create", "backfill watch", "backfill pause"),
            "counts for a minute what the demo's story already reads; test_cli_backfill.py",
        ),
        shown=("receipts and tax papers are kept for seven years",),
    ),
    "docs/how-to/backup.md": Setting(
        excepted={
            "postroom serve": "needs that nothing runs; test_restore_processes.py",
            "resolve ID": "nothing is unknown in the demo",
        }
    ),
    "docs/how-to/connect-gmail.md": Setting(
        given={"ada@example.com": "mara@lindqvist.example"},
        excepted={"account add gmail": NEEDS_GOOGLE},
        shown=("ID        PROVIDER  EMAIL ",),
    ),
    "docs/how-to/filters.md": Setting(shown=("Removed. Connectors", "Disabled. Connectors", "list-id  switched on")),
    "docs/how-to/gmail-connector.md": Setting(
        excepted={"connector gmail --email": NEEDS_GOOGLE, "chmod 600": STANDS_FOR, "retry": "nothing was refused"}
    ),
    "docs/how-to/imap.md": Setting(
        given={"ada@example.com": "mara@lindqvist.example"}, excepted={"account add imap": ASKS}
    ),
    "docs/how-to/monitoring.md": Setting(excepted={"connector gmail --email": NEEDS_GOOGLE}),
    "docs/how-to/replay.md": Setting(
        given={"~/.local/share/postroom/": "$POSTROOM_DATA_DIR/", "'END'": "END", "`postroom doctor`": "doctor"},
        shown=("queued once more in gateway: ",),
    ),
    "docs/how-to/undo.md": Setting(
        before="postroom token create --role agent --name assistant || true\n",
        given={
            "5bcb3e45": "ID",
            "01a1df9b-51c6-7d0e-9f43-6b1d6a0f2c11": "$(postroom reclassify --since 1d --json | jq -r .batch_id)",
        },
        shown=("It is being undone.", "Would undo "),
    ),
    "docs/how-to/contacts.md": Setting(
        before=VCARD + "printf 'Name,Email\\nIvo,ivo@work.example\\n' > work.csv\n",
        given={"--account ada@work.example": "--account mara@lindqvist.example"},
        shown=("1 added, 0 updated, 0 unchanged",),
    ),
    "docs/how-to/failed-jobs.md": Setting(
        given={"01a1de6a-3b49-77fa-8323-f11105a03c0c": "ID"},
        excepted={"jobs retry 01a1": "nothing fails in the demo", "xargs": "nothing fails in the demo"},
    ),
    "docs/how-to/http-producers.md": Setting(
        before=TOKEN.format("connector --identity webhook:ci"), shown=('"status":"accepted","duplicate":false}',)
    ),
    "docs/how-to/import-rules.md": Setting(
        before="""cat > mailFilters.xml <<'END'
<?xml version='1.0' encoding='UTF-8'?>
<feed xmlns='http://www.w3.org/2005/Atom' xmlns:apps='http://schemas.google.com/apps/2006'>
<entry><category term='filter'/><apps:property name='from' value='ida@shop.example'/>
<apps:property name='label' value='Shop'/></entry>
<entry><category term='filter'/><apps:property name='hasTheWord' value='has:drive'/>
<apps:property name='label' value='Drive'/></entry></feed>
END
""",
        shown=(
            "filter 1  Gmail filter 1: from ida@shop.example  apply_label Shop  came over  -",
            "filter 2  hasTheWord has:drive                   -                 refused    has:drive",
        ),
    ),
    "docs/how-to/keys.md": Setting(given={"POSTROOM_SECRET_KEY=…": "KEY=$(openssl rand -base64 32)"}),
    # The demo has this page's queue: see its fixture.
    "docs/how-to/own-queue.md": Setting(shown=("alerts   page ", "webhook  disk.critical  /var is full")),
    "docs/how-to/postgresql.md": Setting(
        given={"postgresql://postroom:…@db.example/mail": "$POSTGRES"}, excepted={"db2.example": NEEDS_MACHINES}
    ),
    "docs/how-to/redis.md": Setting(
        before="export POSTROOM_CONNECTOR_SWITCHBOARD_URL=http://127.0.0.1:8025\n",
        given={"redis://127.0.0.1:6379/0": "$REDIS", "redis-cli": "redis-cli -s ${REDIS#unix://}"},
    ),
    "docs/how-to/preview.md": Setting(
        before=MBOX + VCARD + "printf 'rules: [{name: a, if: {subject_words: b}, then: archive}]\\n' > rules.yaml\n",
        excepted={"preview --account": NEEDS_GOOGLE},
        shown=("0 would need your approval", "MESSAGES  LEAVE  WAIT  STAY  MOSTLY"),
    ),
    "docs/how-to/retention.md": Setting(
        before="export POSTROOM_RETENTION_FULL_DAYS=730\n", after="postroom retention disable"
    ),
    "docs/how-to/rules-as-code.md": Setting(
        files={"rules.yaml": "tests:"},
        given={
            "rules diff rules.yaml": "rules diff rules.yaml || test $? = 2  # there is a difference",
            "apply rules.yaml          #": "apply rules.yaml --yes  #",
        },
        shown=("2 rules; 3 of 3 tests pass.",),
    ),
    "docs/how-to/safety.md": Setting(
        given={"label Taxes": "label Receipts"},
        after="postroom protect remove label Receipts; postroom resume --yes",
        shown=(
            "Paused: nothing is changed in any mailbox until you resume;",
            "Protected: no mail of ann@example.com",
        ),
    ),
    "docs/how-to/senders.md": Setting(
        given={"--plan team --password ": "--plan team --password <<< 'a long password' "}
    ),
    "docs/how-to/shadow.md": Setting(
        before=RECEIPTS, excepted={"proposals show": "nothing is proposed in the demo's first minutes"}
    ),
    "docs/how-to/sign-in.md": Setting(before="postroom person add mara --role admin || true\n"),
    "docs/how-to/simulate.md": Setting(
        before="printf 'rules: [{name: a, if: {subject_words: b}, then: archive}]\\n' > new-rules.yaml\n",
        shown=("messages replayed;", "asks for approval  "),
    ),
    "docs/how-to/starter-rules.md": Setting(
        before=MBOX,
        shown=("Newsletters and other bulk mail get the label Newsletters and are archived.", "the last 7 days:"),
    ),
    "docs/how-to/submit.md": Setting(
        before=ACME + TOKEN.format("sender --sender ada@acme.example"),
        excepted={"swaks": "a client of its own; tests of submission have others", "curl …": STANDS_FOR},
    ),
    "docs/how-to/tokens.md": Setting(
        given={"01a1deed-a6d1-7595-8f69-4dae58d149df": "ID"}, excepted={"@event.json": STANDS_FOR}
    ),
    "docs/reference/categories.md": Setting(excepted={"bench.labelled": STANDS_FOR}),
    "docs/reference/cli.md": Setting(
        given={"3fa2c1": "ID", "undo 9adae949": "undo --since 1m", ' from:"Mara Lindqvist"': " e"}
    ),
    "docs/reference/delivery.md": Setting(excepted={"resolve ID": "nothing is unknown in the demo"}),
    "docs/reference/outbound.md": Setting(
        excepted={
            "resolve ID": "nothing is unknown in the demo",
            "outbound cancel ID --reason": "what the demo sends leaves at once",
        }
    ),
    "docs/reference/model.md": Setting(
        given={"--message ID": "--message $(postroom mail list --json --limit 1 | jq -r .id)"},
        excepted={"POSTROOM_MODEL_PROVIDER=anthropic": STANDS_FOR},
    ),
    "docs/reference/queues.md": Setting(shown=("QUEUE    TIER           WAITING  LEASED  OLDEST WAITING AT",)),
    "docs/reference/rules.md": Setting(
        before=MBOX + "cp all-mail.mbox mail.mbox; sed 1d mail.mbox > message.eml\n"
        "printf 'rules: [{name: a, if: {subject_words: b}, then: archive}]\\n' | tee new.yaml > rules.yaml\n",
        given={"labels deny Private": "labels deny Receipts"},
    ),
    "docs/reference/sandbox.md": Setting(before=MBOX + "cp all-mail.mbox takeout.mbox\n"),
}
# Pages that a test of their own runs.
ELSEWHERE = {
    "docs/develop/contributing.md": "test_documented.py and test_contract.py are these commands",
    "docs/how-to/install.md": "test_install.py",
    "docs/how-to/keep.md": "test_keep.py",
    "docs/tutorial/first-quarter-of-an-hour.md": "test_tutorial.py",
}
# Where the servers that some pages take for granted are, by the variable that stands for each.
SERVERS: dict[str, Callable[[pytest.FixtureRequest], str]] = {
    "POSTGRES": lambda request: request.getfixturevalue("postgres_url"),
    "REDIS": lambda request: request.getfixturevalue("redis_server").url,
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
    # A queue is known to everything that runs, so the demo has the one that a page adds.
    added = tomllib.loads(content_of(DOCS / "how-to/own-queue.md", "[queues.alerts]"))
    queues = {f"POSTROOM_{name.upper()}": json.dumps(value) for name, value in added.items()}
    # Nobody reads the log, and a full pipe would stop the demo.
    home = Home(folder, NO_SIGN_IN | queues | {"POSTROOM_LOG_LEVEL": "error"})
    process = ForkedProcess(["demo", "--port", "0", "--json", "--data-dir", str(folder)], folder, home.environment)
    try:
        home.port = json.loads(process.stdout.readline())["url"].rpartition(":")[2].strip("/")
        home.environment["POSTROOM_DATA_DIR"] = str(folder / ".postroom-demo")
        asyncio.run(_until_busy(folder / ".postroom-demo"))
        yield home
    finally:
        process.kill()
        process.communicate()


async def _until_busy(folder: Path) -> None:
    """Wait until the demo has done something, so that every list has an entry."""
    database = SqliteDatabase(folder / FILE)
    try:
        await until(database, lambda: database.run(list_actions(10)), lambda found: len(found) == 10)
    finally:
        await database.close()


@pytest.mark.parametrize("name", [name for name in PAGES if name not in {*ELSEWHERE}])
def test_the_commands_of_a_page_run_as_written(demo: Home, name: str, request: pytest.FixtureRequest) -> None:
    setting = SETTINGS.get(name, Setting())
    blocks = [each for each in commands_in(PAGES[name]) if not any(text in each for text in setting.excepted)]
    for file, text in setting.files.items():
        (demo.folder / file).write_text(content_of(PAGES[name], text))
    for variable in [each for each in SERVERS if each in str(setting.given)]:
        demo.environment[variable] = SERVERS[variable](request)
    script = "\n".join([setting.before, *blocks, setting.after])
    for text, meant in {PORT: demo.port, **setting.given}.items():
        script = script.replace(text, meant)
    printed = demo.run(script)
    assert [text for text in setting.shown if text not in printed] == [], printed[-2000:]


def test_what_is_taken_for_granted_or_excepted_is_in_a_page() -> None:
    """Lest the lists above outlive the pages."""
    assert {*SETTINGS, *ELSEWHERE} <= set(PAGES)
    for name, setting in SETTINGS.items():
        page, blocks = PAGES[name].read_text("utf-8"), commands_in(PAGES[name])
        assert [text for text in setting.shown if text not in page] == []
        assert [text for text in (*setting.given, *setting.excepted) if not any(text in each for each in blocks)] == []
