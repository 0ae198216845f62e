"""`postroom account`: connect mailboxes, look at them, pause, resume or remove them."""

import contextlib
import webbrowser
from collections.abc import AsyncGenerator, Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, assert_never, cast

import typer

from postroom.cli.application import application_of
from postroom.cli.operator import operator_signature
from postroom.cli.options import AsJson, DataDir, command_group, settings_for
from postroom.cli.output import show_json, show_list
from postroom.cli.running import run_transaction, with_database
from postroom.core.errors import BadInput
from postroom.core.mail.account_repair import consent_command, repair_in, resume_command, usable_again

if TYPE_CHECKING:
    from uuid import UUID

    from postroom.gmail.oauth import ConsentRequest, GoogleApp, GoogleOAuth, Grant
    from postroom.gmail.scopes import Level
    from postroom.settings.reading import Settings
    from postroom.store.accounts import AccountView
    from postroom.store.engine.database import Database, Transaction

    Move = Callable[[AccountView], Transaction[AccountView]]

app = command_group("Connect mailboxes; look at them, pause, resume or remove them.")

COLUMNS = ("id", "email", "state", "level", "granted_at", "refreshed_at", "state_reason")
# Nothing listens there: the browser ends at this address and shows it, with the code in it.
NOWHERE = "http://127.0.0.1:1/"
PATIENCE_S = 600

Name = Annotated[str, typer.Argument(metavar="ID_OR_ADDRESS", help="The account, by its id or its mail address.")]


@app.command()
def add(
    context: typer.Context,
    provider: Annotated[str, typer.Argument(metavar="PROVIDER", help="Where the mailbox is: gmail.")],
    level: Annotated[
        str | None,
        typer.Option(
            "--level",
            help="What Postroom may do there: read, organise, send or full; by default what it may now, or organise.",
        ),
    ] = None,
    email: Annotated[
        str | None, typer.Option("--email", metavar="ADDRESS", help="The mailbox; without it, Google's page asks.")
    ] = None,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the address of Google's page, and take the code from here.")
    ] = False,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Connect a mailbox, or renew its consent: Google asks you in the browser, and Postroom keeps it, sealed."""
    from postroom.compose.google import google_app
    from postroom.gmail.scopes import LEVELS

    if provider != "gmail":
        raise BadInput("PROVIDER", f"{provider!r} is not known", "use gmail")
    if level is not None and level not in LEVELS:
        raise BadInput("--level", f"there is no level {level!r}", f"use one of {', '.join(LEVELS)}")
    settings = settings_for(data_dir)
    adding = _Adding(settings, google_app(settings), cast("Level | None", level), email, no_browser)
    account, grant = with_database(application_of(context), settings, adding.run)
    if as_json:
        show_json(_row(account))
    else:
        granted = account.consent.level if account.consent else "nothing"
        typer.echo(f"{account.email}  connected with the level {granted}  ({account.id})")
    _warn(adding.level, adding.beside, account, grant)


class _Adding:
    """One run of `account add`."""

    def __init__(
        self, settings: "Settings", app: "GoogleApp", level: "Level | None", email: str | None, no_browser: bool
    ) -> None:
        from postroom.compose.google import scopes_beside
        from postroom.gmail.scopes import DEFAULT_LEVEL

        self._settings = settings
        self._app = app
        self._chosen: Level | None = level
        self.level: Level = level or DEFAULT_LEVEL
        self.beside = scopes_beside(settings)
        self._email = email
        self._no_browser = no_browser

    async def run(self, database: "Database") -> "tuple[AccountView, Grant]":
        import httpx2

        from postroom.compose.google import vault_of
        from postroom.core.mail.accounts import one_spelling, same_mailbox
        from postroom.gmail.oauth import ConsentRefused, GoogleOAuth, address_of
        from postroom.manage.accounts import connect, gmail_account
        from postroom.store.engine.migrate import applied_migrations, migrate

        if not await database.run(applied_migrations()):
            await migrate(database)
        before = None if self._email is None else await gmail_account(database, self._email)
        if before is not None:
            self._renew(before)
        request, code = await (self._pasted() if self._no_browser else self._browsed())
        async with httpx2.AsyncClient(timeout=30) as http:
            grant = await GoogleOAuth(http, self._app).exchange(request, code)
            address = one_spelling(await address_of(http, self._settings.gmail.base_url, grant.access_token))
        if self._email is not None and not same_mailbox(self._email, address):
            raise ConsentRefused(
                f"the consent is for {address}, not for {self._email}; start again, and choose that one"
            )
        if before is None and (found := await gmail_account(database, address)) is not None:
            self._keep_level(found, grant)
        signed, now = operator_signature(), datetime.now(UTC)
        vault = vault_of(self._settings)
        return await connect(database, vault, grant, address, self._app.client_id, signed, now), grant

    def _renew(self, account: "AccountView") -> None:
        """Says beforehand that no second account comes of it, and asks for what the account has, unless told else."""
        if account.consent is not None and self._chosen is None:
            self.level = cast("Level", account.consent.level)
        _tell_renewal(account)

    def _keep_level(self, account: "AccountView", grant: "Grant") -> None:
        """Whose account it is came out at Google's page: it is not to lose by chance what it was granted before."""
        from postroom.gmail.oauth import ConsentRefused
        from postroom.gmail.scopes import granted_level, is_lower

        consent = account.consent
        if consent is not None and self._chosen is None and is_lower(granted_level(grant.scopes), consent.level):
            command = consent_command(account.email, None)
            raise ConsentRefused(
                f"{account.email} is connected with the level {consent.level} already, and this consent allows less; "
                f"run `{command}` to renew it as it is, or with `--level {self.level}` to narrow it"
            )
        _tell_renewal(account)

    async def _browsed(self) -> "tuple[ConsentRequest, str]":
        """The browser comes back to a page of ours on this machine."""
        import asyncio

        from postroom.gmail.loopback import listening
        from postroom.gmail.oauth import ConsentRefused, begin_consent

        async with listening() as loopback:
            request = begin_consent(self._app, loopback.redirect_uri, self.level, self._email, self.beside)
            loopback.expect(request)
            typer.echo(f"Google asks for your consent at this address:\n\n{request.url}\n", err=True)
            opened = await asyncio.to_thread(webbrowser.open, request.url)
            hint = (
                "It opens in your browser." if opened else "Open it in a browser on this machine, or use --no-browser."
            )
            typer.echo(hint, err=True)
            try:
                async with asyncio.timeout(PATIENCE_S):
                    return request, await loopback.code()
            except TimeoutError:
                raise ConsentRefused("no answer came within 10 minutes; start again") from None

    async def _pasted(self) -> "tuple[ConsentRequest, str]":
        """The browser is elsewhere: it ends at an address that leads nowhere, and the user brings that here."""
        from postroom.gmail.oauth import answer_in, begin_consent

        request = begin_consent(self._app, NOWHERE, self.level, self._email, self.beside)
        typer.echo(f"Open this address in any browser, and agree:\n\n{request.url}\n", err=True)
        typer.echo("The browser then ends at a page that cannot be reached. Its address holds the code.", err=True)
        return request, answer_in(request, typer.prompt("Paste that address, or the code", err=True))


@app.command("list")
def list_(context: typer.Context, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """List the accounts: their state, why, and what was consented to."""
    from postroom.store.accounts import list_accounts

    found = run_transaction(application_of(context), settings_for(data_dir), list_accounts())
    show_list([_row(account) for account in found], COLUMNS, as_json=as_json)


@app.command()
def pause(
    context: typer.Context,
    name: Name,
    reason: Annotated[str | None, typer.Option("--reason", help="Why; it is kept, and shown in the list.")] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Leave an account alone for a while: its jobs wait, and nothing of it is lost. Once this answers, nothing more is
    changed in it. Safe to repeat."""
    from postroom.store.accounts import pause_account

    def pausing(account: "AccountView") -> "Transaction[AccountView]":
        return pause_account(account.id, operator_signature(reason), datetime.now(UTC))

    _move(context, settings_for(data_dir), name, pausing, as_json)


@app.command()
def resume(context: typer.Context, name: Name, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Use an account again: what waited for it goes on. Safe to repeat."""
    from postroom.store.accounts import resume_account

    def resuming(account: "AccountView") -> "Transaction[AccountView]":
        if account.state == "removed":
            remedy = f"connect it again with `{consent_command(account.email, None)}`"
            raise BadInput("account", f"{account.email} was removed", remedy)
        return resume_account(account.id, operator_signature(), datetime.now(UTC))

    _move(context, settings_for(data_dir), name, resuming, as_json)


@app.command()
def sync(context: typer.Context, name: Name, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Have a mailbox and its labels looked at now, by jobs. Both are also looked at all the time. Safe to repeat."""

    async def asking(database: "Database") -> "tuple[AccountView, UUID]":
        from postroom.manage.accounts import find_account
        from postroom.store.job_builders import labels_job, sync_job
        from postroom.store.jobs import enqueue_many

        account = await find_account(database, name)
        if account.state != "active":
            raise BadInput("account", f"{account.email} {_not_in_use(account)}", _use_again(account))
        jobs = [sync_job(account.id), labels_job(account.id)]
        looked_at, _ = await database.run(enqueue_many(jobs, datetime.now(UTC)))
        return account, looked_at.id

    account, job_id = with_database(application_of(context), settings_for(data_dir), asking)
    row = {"account": account.email, "job_id": job_id}
    show_json(row) if as_json else typer.echo(f"{account.email}  is looked at by the job {job_id}")


@app.command()
def remove(context: typer.Context, name: Name, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Remove an account: its consent is ended and its secrets are wiped; its mail and history stay. Safe to repeat."""
    settings = settings_for(data_dir)

    async def removing(database: "Database") -> "tuple[AccountView, bool]":
        from postroom.compose.google import google_app, vault_of
        from postroom.manage.accounts import find_account, remove
        from postroom.store.accounts import load_account

        account = await find_account(database, name)
        has_app = settings.google.client_id is not None and settings.google.client_secret is not None
        async with _oauth(google_app(settings) if has_app else None) as oauth:
            signed, now = operator_signature(), datetime.now(UTC)
            ended = await remove(database, vault_of(settings), oauth, account, signed, now)
        return await database.run(load_account(account.id)), ended

    account, ended = with_database(application_of(context), settings, removing)
    _show(account, as_json)
    if not ended:
        typer.echo(
            "Google was not told: end the consent yourself at https://myaccount.google.com/connections", err=True
        )


def _not_in_use(account: "AccountView") -> str:
    mending = repair_in(account.state_reason, account.email)
    match account.state:
        case "paused":
            return "is paused"
        case "removed":
            return "was removed"
        case "active" | "needs_consent":
            return "has lost its consent" if mending is None else f"cannot be used: {mending.problem}"
        case _:
            assert_never(account.state)


def _use_again(account: "AccountView") -> str:
    """What has to be done before anything can be asked of the mailbox."""
    if mending := repair_in(account.state_reason, account.email):
        return f"{mending.remedy}, then run `{resume_command(account.email)}`"
    level = account.consent.level if account.consent else None
    return f"run `{usable_again(account.state, account.email, level)}` first"


def _move(context: typer.Context, settings: "Settings", name: str, transaction: "Move", as_json: bool) -> None:
    async def moving(database: "Database") -> "AccountView":
        from postroom.manage.accounts import find_account
        from postroom.manage.pausing import forbid

        return await forbid(database, transaction(await find_account(database, name)))

    _show(with_database(application_of(context), settings, moving), as_json)


def _show(account: "AccountView", as_json: bool) -> None:
    show_json(_row(account)) if as_json else typer.echo(f"{account.email}  {account.state}")


def _row(account: "AccountView") -> dict[str, object]:
    consent = account.consent
    return {
        "id": account.id,
        "provider": account.provider,
        "email": account.email,
        "endpoint_identity": account.endpoint_identity,
        "state": account.state,
        "state_reason": account.state_reason,
        "level": consent and consent.level,
        "scopes": sorted(consent.scopes) if consent else [],
        "granted_at": consent and consent.granted_at,
        "refreshed_at": consent and consent.refreshed_at,
        "dies_at": consent and consent.dies_at,
        "created_at": account.created_at,
        "updated_at": account.updated_at,
    }


@contextlib.asynccontextmanager
async def _oauth(app: "GoogleApp | None") -> "AsyncGenerator[GoogleOAuth | None]":
    """Google's token endpoints, for as long as the block runs."""
    import httpx2

    from postroom.gmail.oauth import GoogleOAuth

    async with httpx2.AsyncClient(timeout=30) as http:
        yield None if app is None else GoogleOAuth(http, app)


def _tell_renewal(account: "AccountView") -> None:
    level = f", level {account.consent.level}" if account.consent else ""
    typer.echo(
        f"{account.email} has an account already ({account.id}, {account.state}{level}): "
        "its consent is renewed, and no second account is made.",
        err=True,
    )


def _warn(asked: "Level", beside: "tuple[str, ...]", account: "AccountView", grant: "Grant") -> None:
    """What the user should know of the consent: less than asked for, or one that will not last."""
    from postroom.gmail.scopes import Consented, covered, missing_scopes, needs_more

    consented = Consented(account.email, grant.scopes)
    if missing := missing_scopes(asked, grant.scopes):
        typer.echo(needs_more("what was asked for", missing, consented, asked), err=True)
    if lacking := [scope for scope in beside if scope not in covered(grant.scopes)]:
        typer.echo(needs_more("pulling gmail.pubsub_subscription", lacking, consented), err=True)
    if account.consent and account.consent.dies_at:
        typer.echo(
            f"Google ends this consent on {account.consent.dies_at:%Y-%m-%d %H:%M} UTC, because the app is in "
            '"Testing"; publish it in the Google Cloud console (Audience, Publish app) and connect again.',
            err=True,
        )
