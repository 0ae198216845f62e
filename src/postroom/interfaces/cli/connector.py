"""`postroom connector`: run a connector by itself, or list the connectors that report."""

import re
import socket
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

from postroom.core.counted import counted
from postroom.core.errors import BadInput
from postroom.interfaces.cli.running import run_until_stopped
from postroom.interfaces.cli.session import Session, command_group
from postroom.interfaces.cli.table import add_commands
from postroom.operations.connectors.not_ingested import list_not_ingested, retry_ingest
from postroom.operations.operation import Argument

if TYPE_CHECKING:
    pass

app = command_group("Run a connector by itself, or list the connectors that report.")
add_commands(app, "connector", "connectors.connectors")

NOT_INGESTED = ("account", "message_id", "state", "reason", "since", "next_try_at")
RETRIED = ("message_id", "job_id", "asked_before")
LONGEST_NAME = 512
LONGEST_ADDRESS = 240
Switchboard = Annotated[
    str | None, Argument("The switchboard (`connector.switchboard_url`).", typed_as="--switchboard URL")
]


@app.command()
def refused(session: Session) -> None:
    """List the mail that connectors could not deliver: refused for good, or set aside for now."""
    session.show_list(list_not_ingested(session.settings.data_dir), NOT_INGESTED)


@app.command()
def retry(
    session: Session,
    account: Annotated[str, Argument("Whose mail it is.", typed_as="--account ID_OR_ADDRESS")],
    message: Annotated[
        Sequence[str], Argument("A message, by its id in the mailbox; repeatable.", typed_as="--message ID")
    ] = (),
    everything: Annotated[
        bool, Argument("Everything that `postroom connector refused` lists.", typed_as="--all")
    ] = False,
) -> None:
    """Ingest messages once more, up to a hundred per job. Safe to repeat."""
    if bool(message) == everything:
        raise BadInput("--message", "is missing, or combined with --all", "give one of the two")
    session.show_list(session.ask(retry_ingest, account=account, messages=message), RETRIED)


@app.command("redis-stream")
def redis_stream(
    session: Session,
    stream: Annotated[str, Argument("The stream to read.", typed_as="--stream NAME")],
    url: Annotated[
        str | None,
        Argument("The address of Redis (`redis.url`). If it has a password, use POSTROOM_REDIS_URL instead."),
    ] = None,
    group: Annotated[str, Argument("The consumer group; created if missing.")] = "postroom",
    consumer: Annotated[
        str | None,
        Argument("This process's name in the group; default: the host name.", typed_as="--consumer NAME"),
    ] = None,
    identity: Annotated[
        str | None, Argument("The endpoint identity of the events; default: redis: and the stream's name.")
    ] = None,
    switchboard: Switchboard = None,
    batch: Annotated[int, Argument("Entries to deliver at once.", 1, 100)] = 100,
    claim_after: Annotated[
        float, Argument("Seconds after which a silent consumer's entries are taken over.", 1, 86_400)
    ] = 60,
) -> None:
    """Deliver the events of a Redis stream. The token is read from POSTROOM_CONNECTOR_TOKEN. Ctrl-C stops it."""
    _refuse_password(url)
    reading = {
        "stream": _name("--stream", stream),
        "group": _word("--group", group),
        "consumer": _word("--consumer", consumer or socket.gethostname()),
        "identity": _name("--identity", identity or f"redis:{stream}"),
    }
    settings = session.settings_with({"redis.url": url, "connector.switchboard_url": switchboard})

    def ready(identity: str) -> None:
        session.show_line(reading, f"Reading the stream {stream} as {identity}  (Ctrl-C stops it)")

    connecting = session.application.connector_redis_stream(
        settings,
        **reading,
        batch=batch,
        claim_after=timedelta(seconds=claim_after),
        ready=ready,
    )
    run_until_stopped(connecting)


@app.command("gmail")
def gmail(
    session: Session,
    email: Annotated[str, Argument("The mailbox, as Google knows it.", typed_as="--email ADDRESS")],
    also: Annotated[
        Sequence[str],
        Argument("Another address of yours, such as a send-as address; repeatable.", typed_as="--also ADDRESS"),
    ] = (),
    once: Annotated[bool, Argument("Deliver the new mail once, print its number, and exit.")] = False,
    switchboard: Switchboard = None,
) -> None:
    """Deliver the mail of one Gmail account. The token is read from POSTROOM_CONNECTOR_TOKEN. Ctrl-C stops it."""
    mailbox = _mail_address("--email", email)
    others = tuple(_mail_address("--also", each) for each in also)
    settings = session.settings_with({"connector.switchboard_url": switchboard})

    def ready(identity: str) -> None:
        if not once:
            session.show_line({"identity": identity}, f"Watching {identity}  (Ctrl-C stops it)")

    def report(new: int) -> None:
        session.show_line({"new": new}, counted(new, "new message"))

    connecting = session.application.connector_gmail(
        settings, email=mailbox, also=others, once=once, ready=ready, report=report
    )
    run_until_stopped(connecting)


def _mail_address(option: str, value: str) -> str:
    """Return the address in its normalized form; refuse one that would be a path outside the connectors' folder."""
    from postroom.core.mail.addresses import canonical

    found = canonical(value)
    if found is None or len(found) > LONGEST_ADDRESS or "/" in found or not found.isprintable():
        raise BadInput(option, f"{value[:80]!r} is not an address", "give one such as mara@lindqvist.example")
    return found


def _word(option: str, value: str) -> str:
    if not re.fullmatch(r"[\x21-\x7e]{1,128}", value):
        raise BadInput(option, f"{value[:80]!r} is not allowed", "use 1 to 128 letters, digits and symbols, no spaces")
    return value


def _name(option: str, value: str) -> str:
    """Refuse a name that the switchboard would refuse: it would reject every entry for good."""
    if not value.strip() or not value.isprintable() or len(value) > LONGEST_NAME:
        raise BadInput(option, f"{value[:80]!r} is not allowed", f"use 1 to {LONGEST_NAME} characters on one line")
    return value


def _refuse_password(url: str | None) -> None:
    """Refuse a password in an option: every user of this machine can read the options of a process."""
    from postroom.vault.masking import masked_urls

    if url is not None and masked_urls(url) != url:
        raise BadInput(
            "--url", "contains a password", "put the address into POSTROOM_REDIS_URL, where others cannot see it"
        )
