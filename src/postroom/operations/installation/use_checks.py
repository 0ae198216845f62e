"""Checks of `postroom doctor` about use: what runs, who can sign in, what waits for a person, and what to do next."""

import os
from collections.abc import Sequence

from postroom import __version__
from postroom.core.counted import counted
from postroom.core.errors import SettingsError
from postroom.operations.accounts.account_status import AccountLine, account_lines
from postroom.operations.installation.checks import Check, passes_if
from postroom.operations.overview.first_steps import FirstSteps, StepName
from postroom.operations.overview.overview import Overview
from postroom.settings.reading import Settings
from postroom.store.engine.database import Database
from postroom.store.engine.serve_lock import Served, served_by
from postroom.store.installation.program_versions import last_version
from postroom.store.people.people import has_people
from postroom.system.http_server.listening import open_listener
from postroom.system.wall_clock import Clock

WELL = "Everything is fine."
NOT_STARTED = "connect a mailbox and choose rules: `postroom init`; or look around first: `postroom demo`"
SAME_DAY = {"UTC", "GMT", "Etc/UTC", "Etc/GMT", "Universal", "Zulu"}
START = "start it with `postroom serve`, or `postroom service install`"


def running(settings: Settings) -> list[Check]:
    """Whether Postroom runs on this folder, and if not, whether it could. Processes on PostgreSQL are not seen here."""
    if settings.database_url is not None:
        return []
    served = served_by(settings.data_dir)
    if served is not None:
        return [Check("running", "ok", _describe(served))]
    try:
        open_listener(settings.web.host, settings.web.port, allow_exposed=True).close()
    except SettingsError:
        found = f"another program uses {settings.web.host}:{settings.web.port}"
        remedy = "stop that program, or choose another port: `postroom serve --port NUMBER`"
        return [Check("running", "warn", f"no; {found}", remedy)]
    return [Check("running", "ok", f"no; {START}")]


def _describe(served: Served) -> str:
    where = f" at {served.address}" if served.address else ""
    return f"process {served.process}{where}, since {served.since.astimezone():%Y-%m-%d %H:%M}"


def time_zone(chosen: str, is_set: bool, machine: str | None) -> Check:
    """Whether days begin when the user's do. `machine` is the time zone of this machine, if that is known."""
    is_right = is_set or machine is None or machine in SAME_DAY
    remedy = f"run `postroom settings set time_zone {machine}`: limits and budgets of a day begin at its midnight"
    found = chosen if is_right else f"{chosen}, because none is set; this machine is in {machine}"
    return passes_if("time zone", is_right, found, remedy, "warn")


def machine_zone() -> str | None:
    """The time zone of this machine; None if it cannot be told."""
    if named := os.environ.get("TZ", "").removeprefix(":"):
        return named
    return os.path.realpath("/etc/localtime").partition("zoneinfo/")[2] or None


async def use_checks(database: Database, settings: Settings, clock: Clock) -> list[Check]:
    """The checks that need an up-to-date database."""
    waiting = await Overview(database, clock).count_waiting()
    approvals = passes_if(
        "approvals",
        not waiting,
        f"{counted(waiting, 'action')} {'needs' if waiting == 1 else 'need'} your approval"
        if waiting
        else "none waits",
        "look at them with `postroom approvals list`, or on the page",
        "warn",
    )
    return [
        Check("version", "ok", f"Postroom {__version__}; {await last_version_line(database)}"),
        *([await _sign_in(database)] if settings.web.sign_in else []),
        approvals,
    ]


async def last_version_line(database: Database) -> str:
    return f"the database was last used by {await database.run(last_version())}"


async def _sign_in(database: Database) -> Check:
    is_set = await database.run(has_people())
    remedy = "run `postroom person add NAME --role admin` for a link, or open the one that `postroom serve` prints"
    return passes_if("sign-in", is_set, "set up" if is_set else "nobody can sign in to the pages yet", remedy, "warn")


async def setup_step(database: Database, settings: Settings, clock: Clock) -> str | None:
    """The next step into a new installation; None when they are behind."""
    model = settings.model if settings.model.provider != "none" else None
    overview = Overview(database, clock, model=model)
    accounts = await account_lines(database, clock())
    has_mail = bool(await overview.lines(1))
    control = await overview.control_state()
    steps = await overview.first_steps(accounts, control, has_mail=has_mail, has_events=False)
    return None if steps is None else step_line(steps, accounts, is_running=served_by(settings.data_dir) is not None)


def step_line(steps: FirstSteps, accounts: Sequence[AccountLine], *, is_running: bool) -> str:
    """The step in words, with its command."""
    name: StepName = next(each.name for each in steps.steps if each.is_next)
    match name:
        case "connect":
            return NOT_STARTED
        case "preview" if is_running:
            return "wait until your mail has arrived: `postroom mail list`"
        case "preview" if any(each.acts_from is not None for each in accounts):
            return "start Postroom, which sorts your mail: `postroom serve`"
        case "preview":
            return "start Postroom, which fetches your mail and changes nothing: `postroom serve`"
        case "rules":
            return "see what rules would do with your mail, and choose some: `postroom init`"
        case "on" if not steps.active_rules:
            return "switch a rule on: `postroom rules list`, then `postroom rules enable NAME`"
        case "on":
            waiting = next((each.email for each in accounts if each.acts_from is None), None)
            return f"switch it on: `postroom {f'account act {waiting}' if waiting else 'resume'}`"


def next_step(found: Sequence[Check], setup: str | None) -> str:
    """The most urgent thing to do: what fails, then the setup, then what is doubtful."""
    failed = [each for each in found if each.verdict == "fail"]
    doubtful = [each for each in found if each.verdict == "warn"]
    if failed:
        return f"{failed[0].name}: {failed[0].remedy}"
    if setup is not None:
        return setup
    return f"{doubtful[0].name}: {doubtful[0].remedy}" if doubtful else WELL


def by_urgency(found: Sequence[Check]) -> list[Check]:
    return sorted(found, key=lambda each: ("fail", "warn", "ok").index(each.verdict))
