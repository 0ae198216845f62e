"""Signs in to an IMAP server: AUTHENTICATE with PLAIN, XOAUTH2 or OAUTHBEARER, or LOGIN. Only over a secure connection,
which `Endpoint` guarantees.
"""

import base64
from dataclasses import dataclass, replace
from typing import Literal

from postroom.core.errors import BadInput
from postroom.mailboxes.imap.commands import Command, command, string
from postroom.mailboxes.imap.connection import Connection
from postroom.mailboxes.imap.errors import NotOffered, SignInCause, sign_in_refusal

Kind = Literal["password", "xoauth2", "oauthbearer"]


@dataclass(frozen=True, slots=True)
class Credentials:
    """Who signs in, and the password or the access token."""

    user: str
    secret: str
    kind: Kind = "password"

    def __post_init__(self) -> None:
        for field, value in (("user", self.user), ("password", self.secret)):
            if not value:
                raise BadInput(field, "is empty", "give it")
            if any(each in value for each in "\0\r\n"):
                raise BadInput(field, "contains a NUL character or a line break", "leave it out")
        if self.kind != "password" and "\x01" in self.user + self.secret:
            raise BadInput("user", "contains a control character", "leave it out")

    def __repr__(self) -> str:
        return f"Credentials({self.kind})"


async def sign_in(connection: Connection, credentials: Credentials) -> None:
    """Sign in, unless the connection already is. Raises SignInRefused, and the errors of the connection."""
    if connection.is_preauthenticated:
        return
    before = connection.capabilities
    if credentials.kind == "password":
        await _with_password(connection, credentials)
    else:
        credentials = _as_offered(connection, credentials)
        message, last_word = _token_message(connection, credentials), _last_word(credentials.kind)
        await _authenticate(connection, credentials.kind.upper(), message, last_word, "token")
    if connection.capabilities is before:
        # It did not say what it can do for somebody who is signed in.
        await connection.run(command("CAPABILITY"))


async def _with_password(connection: Connection, credentials: Credentials) -> None:
    if "AUTH=PLAIN" in connection.capabilities:
        message = f"\0{credentials.user}\0{credentials.secret}".encode()
        await _authenticate(connection, "PLAIN", message, b"*")
        return
    if "LOGINDISABLED" in connection.capabilities:
        raise NotOffered("the server does not take a password", "AUTH=PLAIN")
    await _exchange(connection, command("LOGIN", string(credentials.user), string(credentials.secret)), None, b"")


def _as_offered(connection: Connection, credentials: Credentials) -> Credentials:
    """With the mechanism for tokens that the server offers: the wanted one, if it has both."""
    kinds: tuple[Kind, ...] = (credentials.kind, "oauthbearer" if credentials.kind == "xoauth2" else "xoauth2")
    for kind in kinds:
        if f"AUTH={kind.upper()}" in connection.capabilities:
            return replace(credentials, kind=kind)
    raise NotOffered("the server cannot be signed in to with a token", f"AUTH={credentials.kind.upper()}")


async def _authenticate(
    connection: Connection, mechanism: str, message: bytes, last_word: bytes, usual: SignInCause = "password"
) -> None:
    encoded = base64.b64encode(message)
    if "SASL-IR" in connection.capabilities:
        await _exchange(connection, command("AUTHENTICATE", mechanism.encode(), encoded), None, last_word, usual)
    else:
        await _exchange(connection, command("AUTHENTICATE", mechanism.encode()), encoded, last_word, usual)


async def _exchange(
    connection: Connection, wanted: Command, message: bytes | None, last_word: bytes, usual: SignInCause = "password"
) -> None:
    """Answer the first prompt with the message, if it was not sent yet; any other one with the last word."""
    left = [message] if message is not None else []

    def reply(prompt: bytes) -> bytes:
        del prompt
        return left.pop() if left else last_word

    answer = await connection.ask(wanted, reply=None if wanted.name == "LOGIN" else reply)
    if answer.status.kind != "OK":
        status = answer.status
        raise sign_in_refusal(connection.endpoint.host, status.code, status.text, usual)


def _token_message(connection: Connection, credentials: Credentials) -> bytes:
    if credentials.kind == "xoauth2":
        return f"user={credentials.user}\x01auth=Bearer {credentials.secret}\x01\x01".encode()
    name = credentials.user.replace("=", "=3D").replace(",", "=2C")
    host, port = connection.endpoint.host, connection.endpoint.port
    return f"n,a={name},\x01host={host}\x01port={port}\x01auth=Bearer {credentials.secret}\x01\x01".encode()


def _last_word(kind: Kind) -> bytes:
    """After an error of the token the server explains it, and waits for this before it refuses."""
    return b"" if kind == "xoauth2" else b"AQ=="
