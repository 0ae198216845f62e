"""`postroom init`: from nothing to a mailbox that is sorted, in a quarter of an hour.

Connect a mailbox, see what rules would do with its newest mail, choose rules, choose from when, and switch on. What is
done already is seen from the data, so that it can be left at any question and run again.
"""

import contextlib
import sys
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated

import typer

from postroom.core.counted import counted
from postroom.core.errors import BadInput, PostroomError
from postroom.core.mail.account_repair import lost_access, repair_in
from postroom.core.mail.providers import PROVIDERS, facts_of
from postroom.core.moments import read_start
from postroom.core.rules.starter import starters_named
from postroom.interfaces.cli.account_adding import AddOptions, asked_address, dialog_for
from postroom.interfaces.cli.init_output import (
    choose_number,
    lately_words,
    reading,
    say,
    show_look,
    show_starter,
)
from postroom.interfaces.cli.options import Yes
from postroom.interfaces.cli.parameters import Without
from postroom.interfaces.cli.session import Session, one_command
from postroom.operations.accounts.accounts import (
    AccountView,
    account_of,
    acting_words,
    check_in_use,
    find_account,
    list_accounts,
)
from postroom.operations.accounts.switching_on import SwitchedOn, switch_on
from postroom.operations.actions.kill_switch import released_by_resuming
from postroom.operations.installation.database import is_created, prepare
from postroom.operations.operation import Argument
from postroom.operations.people.pages_address import link_address, pages_address
from postroom.operations.people.people import offer_first_link
from postroom.operations.preview.first_look import FirstLook, StarterLook, take_first_look
from postroom.operations.rules.rules import list_rules
from postroom.system.restore_lock import is_shared

app = one_command()

NONE = "none"
LATELY = timedelta(days=7)
INTERRUPTED = 130
"""The exit code of a run that was interrupted."""
WAYS = {
    "imap": "By its password or an app password: any mailbox, Gmail too. Takes two minutes.",
    "gmail": "Through Gmail's API, with an app of your own at Google. Takes ten minutes to set up first.",
}


@dataclass(slots=True)
class _Progress:
    """How far a run has come."""

    account: AccountView | None = None


@app.command()
def init(
    session: Session,
    options: Annotated[AddOptions, Without("preview")],
    provider: Annotated[
        str | None, Argument(f"How to reach the mailbox: {' or '.join(PROVIDERS)}.", typed_as="--provider NAME")
    ] = None,
    starter: Annotated[
        Sequence[str], Argument("Use these starter rules; repeatable.", typed_as=f"--starter NAME|all|{NONE}")
    ] = (),
    since: Annotated[
        str | None, Argument("Act on mail since then: now, a span back such as 7d, or a time.", typed_as="--from WHEN")
    ] = None,
    yes: Yes = False,
) -> None:
    """Set up Postroom: connect a mailbox, see what rules would do with your mail, choose some, and switch on.

    Nothing in the mailbox changes before the last question. Run it again to go on where you stopped. In a script, give
    --email, --starter and --yes, and the password on standard input.
    """
    if not sys.stdin.isatty() and not (options.email and starter and yes):
        problem = "without a terminal, the address, the rules and your yes are options"
        raise BadInput("init", problem, "give --email, --starter and --yes, and the password on standard input")
    if starter:
        _starters_in(starter)
    start = None if since is None else read_start("--from", since, session.clock())
    progress = _Progress()
    with _saying_where_it_stopped(session, progress):
        say("See what Postroom would do with your mail, then choose. Nothing in your mailbox changes before the last")
        say("question. You are the owner here; a link to sign in to the pages comes at the end.")
        account = progress.account = _account(session, provider, options)
        if not starter and _is_on(session, account):
            say(f"\n{_on_words(account)}")
            _say_what_is_next(session)
            return
        look = _look(session, account)
        chosen = _chosen(look, starter, is_asked=not starter and not yes)
        if not chosen and not _has_rules(look):
            _say_it_stays(session, account, "No rule is chosen, so there is nothing to do")
            return
        if since is None and not yes:
            start = _start(look, chosen)
        if not yes and not _agreed(session, look, chosen, start):
            _say_it_stays(session, account, "Not switched on")
            return
        on = session.ask(switch_on, account=account.email, starters=chosen, since=start)
        _say_it_is_on(session, on)


@contextlib.contextmanager
def _saying_where_it_stopped(session: Session, progress: _Progress) -> Generator[None]:
    """If the run ends early, say in which state it leaves the mailbox."""
    try:
        yield
    except (typer.Abort, KeyboardInterrupt):
        say("\n")
        say(_left(session, progress))
        raise typer.Exit(INTERRUPTED) from None
    except PostroomError:
        say(f"\n{_left(session, progress)}")
        raise


def _left(session: Session, progress: _Progress) -> str:
    again = f"`{session.command_line('init')}` continues from here."
    if progress.account is None:
        return f"Stopped. No mailbox was connected. {again}"
    # Read anew: it may have been switched on just before the run was interrupted.
    account = session.call(find_account, str(progress.account.id))
    if account.acts_from is not None:
        return f"Stopped. {account.email} is switched on."
    return f"Stopped. {account.email} is connected, and nothing in it has changed. {again}"


def _account(session: Session, provider: str | None, options: AddOptions) -> AccountView:
    """Return the mailbox to set up: the one that is connected, or a new one."""
    known = _connected(session)
    if options.email is None and len(known) > 1:
        offers = [*(each.email for each in known), "another mailbox"]
        at = choose_number("Which mailbox?", offers)
        found = known[at] if at < len(known) else None
    elif options.email is None:
        found = known[0] if known else None
    else:
        email = options.email
        matching = [session.call(account_of, each, email) for each in PROVIDERS] if known else []
        found = next((each for each in matching if each is not None and each.state != "removed"), None)
    if found is not None and found.state == "needs_consent" and repair_in(found.state_reason, found.email) is None:
        say(f"\n{lost_access(found.email, found.sign_in)}.")
        return dialog_for(found.provider).connect(session, found.provider, replace(options, email=found.email))
    if found is not None:
        check_in_use(found)
        say(f"\n{found.email} is connected.")
        return found
    return _connect(session, provider, options)


def _connected(session: Session) -> list[AccountView]:
    if not is_created(session.settings):
        return []
    session.call(prepare)
    return [each for each in session.call(list_accounts) if each.state != "removed"]


def _connect(session: Session, provider: str | None, options: AddOptions) -> AccountView:
    usual = sorted(PROVIDERS, key=lambda name: not facts_of(name).is_usual)
    if provider is not None and provider not in PROVIDERS:
        raise BadInput("--provider", f"{provider!r} is unknown", f"use {' or '.join(usual)}")
    if provider is None and sys.stdin.isatty() and options.email is None:
        offers = [WAYS.get(name, f"Connect {facts_of(name).way}.") for name in usual]
        provider = usual[choose_number("How does Postroom reach your mailbox?", offers)]
    name = provider or usual[0]
    if facts_of(name).sign_in == "password":
        options = replace(options, email=options.email or asked_address())
    account = dialog_for(name).connect(session, name, options)
    say(f"{account.email} is connected. Postroom reads it and changes nothing in it yet.")
    return account


def _is_on(session: Session, account: AccountView) -> bool:
    """Whether all steps are done: the account acts, and something decides."""
    if account.acts_from is None:
        return False
    has_rules = any(each.decides for each in session.call(list_rules))
    return has_rules or session.settings.model.provider != "none"


def _look(session: Session, account: AccountView) -> FirstLook:
    """Look at the newest mail of the account, and show it."""
    open_source = partial(session.application.open_source, session.settings)
    now = session.clock()
    look = session.call(take_first_look, session.live_settings.current, account.email, open_source, reading, now=now)
    reading(0)
    say()
    show_look(look)
    return look


def _chosen(look: FirstLook, starter: Sequence[str], *, is_asked: bool) -> list[str]:
    """Return the names of the starters to use."""
    if not is_asked:
        return _starters_in(starter)
    offered = [each for each in look.starters if each.chosen != "yes"]
    if not offered:
        return []
    useful = [each for each in offered if each.matched] or offered
    offers = [
        f"All of these: {', '.join(each.title for each in useful)}",
        "One by one",
        "No starter rules",
    ]
    match choose_number("Which starter rules do you want? They are yours to change later.", offers):
        case 0:
            return [each.name for each in useful]
        case 1:
            return [each.name for each in offered if _is_wanted(each)]
        case _:
            return []


def _is_wanted(starter: StarterLook) -> bool:
    show_starter(starter)
    return typer.confirm("    Use it?", default=starter.matched > 0, err=True)


def _starters_in(names: Sequence[str]) -> list[str]:
    wanted = [name for name in names if name != NONE]
    if len(wanted) < len(names) and wanted:
        raise BadInput("--starter", f"is given as {NONE} and by name", "give one or the other")
    return [each.name for each in starters_named(wanted, "--starter")]


def _has_rules(look: FirstLook) -> bool:
    in_use = any(each.chosen != "no" for each in look.starters)
    return look.own is not None or in_use or look.has_model


def _start(look: FirstLook, chosen: Sequence[str]) -> datetime | None:
    """Ask since when mail is acted on; None for new mail only."""
    lately = lately_words(look, look.effect_lately(chosen))
    offers = ["Only new mail", f"The last 7 days too: {lately}"]
    return look.now - LATELY if choose_number("From when?", offers) else None


def _agreed(session: Session, look: FirstLook, chosen: Sequence[str], start: datetime | None) -> bool:
    """Say what will happen, and ask the last question."""
    say("\nIf you say yes:")
    rules = [each.title for each in look.starters if each.name in chosen]
    if rules:
        everywhere = ", for all your mailboxes" if len(_connected(session)) > 1 else ""
        say(f"  - These rules are switched on{everywhere}: {', '.join(rules)}.")
        say("    They label and archive. They send and delete nothing.")
    say(f"  - New mail of {look.email} is sorted as it comes.")
    if start is not None:
        late = lately_words(look, look.effect_since(start, chosen))
        say(f"  - Mail since {start.astimezone():%Y-%m-%d %H:%M} is sorted too: {late}.")
    say("  - What was done is listed, and you can undo it.")
    return typer.confirm("\nSwitch it on?", default=None, err=True)


def _say_it_stays(session: Session, account: AccountView, why: str) -> None:
    say(f"\n{why}. {account.email} stays connected, and nothing in it changes.")
    say(f"`{session.command_line('init')}` continues from here.")
    if session.as_json:
        session.show_one({"email": account.email, "is_on": False})


def _say_it_is_on(session: Session, on: SwitchedOn) -> None:
    acting = on.acting
    say(f"\n{_on_words(acting.account)}")
    if acting.messages:
        say(f"{counted(acting.messages, 'message')} that Postroom had read before are sorted now.")
    _say_what_is_next(session)
    if session.as_json:
        session.show_one(
            {
                "email": acting.account.email,
                "is_on": True,
                "acts_from": acting.acts_from,
                "rules": on.rules,
                "messages": acting.messages,
            }
        )


def _on_words(account: AccountView) -> str:
    return f"Switched on: Postroom acts on mail of {account.email} {acting_words(account.acts_from)}."


def _say_what_is_next(session: Session) -> None:
    """Say how to start Postroom, unless it runs, and where its pages are, with a link for the first person."""
    settings = session.settings
    is_running = is_shared(settings.data_dir)
    if session.call(released_by_resuming, None) is not None:
        say(f"All changes are paused now. To let them begin: {session.command_line('resume')}")
    if is_running:
        say("Postroom is running: it begins within half a minute.")
    else:
        say(f"Start Postroom now:               {session.command_line('serve')}")
        say(f"Or with this machine, by systemd: {session.command_line('service install --user')}")
    secret = session.call(offer_first_link) if settings.web.sign_in else None
    say(f"\nThe pages list what was done today, with undo: {pages_address(settings)}/")
    if secret is not None:
        say("When Postroom runs, set up your sign-in with this link. It works one time, within a day:")
        say(f"  {link_address(settings, secret)}")
