"""`postroom outbound simulate`: tables, JSON, a picture, one's own history, and wrong scenarios."""

import asyncio
from xml.etree import ElementTree

from postroom.store.engine.opening import open_database
from support.clocks import ManualClock
from support.shell import Shell
from support.store.fault_cases_outbound import leased_outbound
from support.store.job_setup import JobSetup

SCENARIO = """
slots = 5
lasts = "1m"
[[tenants]]
name = "big"
burst = 60
[[tenants]]
name = "shops"
tenants = 4
burst = 2
"""


def test_a_scenario_is_shown_as_tables_and_as_a_picture(shell: Shell) -> None:
    (shell.folder / "scenario.toml").write_text(SCENARIO)
    drawn = shell.folder / "waits.svg"
    assert shell("outbound", "simulate", str(shell.folder / "scenario.toml"), "--svg", str(drawn)) == 0
    lines = shell.out.splitlines()
    assert " ".join(lines[0].split()) == "ORDER GROUP MAILS P50 P95 P99 LONGEST X ALONE LONGEST PAUSE"
    assert [line.split()[:3] for line in lines if " shops " in line] == [
        [order, "shops", "8"] for order in ("alone", "fair", "fifo", "priority", "single-pass")
    ]
    assert ElementTree.parse(drawn).getroot().tag.endswith("svg")


def test_a_flood_slots_and_orders_are_chosen_on_the_command_line(shell: Shell) -> None:
    given = ("--preset", "flood", "--flood", "300", "--slots", "7", "--order", "fair", "--json")
    assert shell("outbound", "simulate", *given) == 0
    (found,) = shell.json()
    assert found["slots"] == 7
    assert [each["discipline"] for each in found["results"]] == ["alone", "fair"]
    assert {each["name"]: each["mails"] for each in found["results"][1]["groups"]} == {"flood": 300, "small": 100}


def test_mail_of_the_past_is_replayed(shell: Shell) -> None:
    async def one_mail() -> None:
        database = await open_database(shell.folder / "postroom-data", None)
        await leased_outbound(JobSetup(database, ManualClock()), "forward")
        await database.close()

    asyncio.run(one_mail())
    assert shell("outbound", "simulate", "--from-history", "--since", "2126-01-01T00:00:00Z") != 0
    assert "no outgoing mail was accepted in that time" in shell.err
    assert shell("outbound", "simulate", "--from-history", "--flood", "50", "--delivery", "2s", "--json") == 0
    fair = shell.json()[-1]["results"][1]
    mails = {each["name"]: each["mails"] for each in fair["groups"] if each["mails"]}
    assert mails == {"1 to 10 mails": 1, "flood": 50}


def test_what_is_wrong_is_said_with_its_remedy(shell: Shell) -> None:
    bad = shell.folder / "bad.toml"
    bad.write_text(SCENARIO.replace("burst = 2", "brust = 2"))
    for given, said in {
        (str(bad),): "tenants.2.brust: is not a field of tenants.2; did you mean 'burst'?",
        (str(shell.folder / "none.toml"),): "cannot be read",
        ("--preset", "floods"): "use one of flood, many-small",
        ("--order", "lifo"): "use one of fair, fifo",
        ("--preset", "flood", "--from-history"): "only one of them",
        ("--from-history", "--delivery", "soon"): "write 800ms, 2s or 1m",
        ("--flood", "9", "--svg", str(shell.folder / "no" / "x.svg")): "name a file in a writable folder",
    }.items():
        assert shell("outbound", "simulate", *given) != 0, given
        assert said in shell.err, (given, shell.err)
    bad.write_text("slots = ")
    assert shell("outbound", "simulate", str(bad)) != 0
    assert "is not TOML" in shell.err
