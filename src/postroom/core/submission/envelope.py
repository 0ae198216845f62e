"""The envelope of a submitted mail: MAIL and RCPT with their parameters, read strictly.

Every address that the standards allow is accepted: quoted, with a source route (which is dropped), with a literal for a
domain, and with any script if the client says SMTPUTF8. Anything else is refused, never repaired. Parameters are those
of RFC 5321, 3461 (DSN), 4865 (FUTURERELEASE), 6531 (SMTPUTF8) and 8689 (REQUIRETLS).
"""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import NamedTuple, cast

from postroom.core.errors import SubmissionRefused
from postroom.core.outbound.destinations import smtp_address
from postroom.core.outbound.transport import Notify

LONGEST_LOCAL = 64
LONGEST_PATH = 254
LONGEST_ENVELOPE_ID = 100
LONGEST_ORIGINAL = 500
LONGEST_HOLD = timedelta(days=30)

_PATH = re.compile(r'(FROM|TO):[ ]*<((?:"(?:[^"\\]|\\.)*"|[^"<>])*)>(?: +(\S.*))?', re.IGNORECASE | re.DOTALL)
_ROUTE = re.compile(r"@[^@:]+(?:,@[^@:]+)*:")
_PARAMETER = re.compile(r"([A-Za-z0-9][A-Za-z0-9-]*)(?:=([!-<>-~\u00a0-\U0010ffff]+))?")
_XTEXT = re.compile(r"(?:[!-*,-<>-~]|\+[0-9A-F]{2})*")
_HEX = re.compile(rb"\+([0-9A-F]{2})")
_NAME = re.compile("[A-Za-z0-9-]+")
_NUMBER = re.compile(r"[0-9]{1,20}")
_MAIL = frozenset({"SIZE", "BODY", "SMTPUTF8", "RET", "ENVID", "REQUIRETLS", "AUTH", "HOLDFOR", "HOLDUNTIL"})
_RCPT = frozenset({"NOTIFY", "ORCPT"})
_REPORTS: tuple[Notify, ...] = ("never", "success", "failure", "delay")


class Path(NamedTuple):
    """An address in a command, and the parameters after it. An empty address is that of reports."""

    address: str
    parameters: Mapping[str, str | None] = {}


class MailFrom(NamedTuple):
    """The parts of a MAIL command. `size` is the client's claim about the message."""

    address: str
    size: int = 0
    smtputf8: bool = False
    require_tls: bool = False
    return_full: bool = False
    envelope_id: str | None = None
    not_before: datetime | None = None


class Recipient(NamedTuple):
    """One recipient: the reports that are wanted, and the address as the sender has it (RFC 3461)."""

    address: str
    notify: tuple[Notify, ...] = ()
    original: str | None = None


def read_mail(arguments: str, now: datetime, *, secure: bool = False) -> MailFrom:
    """Read the arguments of MAIL. `secure`: the connection is encrypted, as REQUIRETLS needs it."""
    path = _path(arguments, "FROM", _MAIL)
    given = path.parameters
    if not given:
        return MailFrom(checked_address(path.address, "MAIL", smtputf8=False) if path.address else "")
    smtputf8 = _flag(given, "SMTPUTF8")
    require_tls = _flag(given, "REQUIRETLS")
    if require_tls and not secure:
        raise _bad("MAIL", "REQUIRETLS needs an encrypted connection", "use STARTTLS first", 530, "5.7.10")
    if (body := given.get("BODY", "7BIT")) is None or body.upper() not in ("7BIT", "8BITMIME"):
        raise _bad("MAIL", "BODY is neither 7BIT nor 8BITMIME", "use one of these", 501)
    if (returned := given.get("RET", "HDRS")) is None or returned.upper() not in ("FULL", "HDRS"):
        raise _bad("MAIL", "RET is neither FULL nor HDRS", "use one of these", 501)
    return MailFrom(
        checked_address(path.address, "MAIL", smtputf8=smtputf8) if path.address else "",
        _number(given, "SIZE") or 0,
        smtputf8,
        require_tls,
        returned.upper() == "FULL",
        _xtext(given, "ENVID", LONGEST_ENVELOPE_ID),
        _hold(given, now),
    )


def read_rcpt(arguments: str, *, smtputf8: bool) -> Recipient:
    """Read the arguments of RCPT."""
    path = _path(arguments, "TO", _RCPT)
    if not path.address:
        raise _bad("RCPT", "the address is empty", "name a recipient", 553, "5.1.3")
    address = checked_address(path.address, "RCPT", smtputf8=smtputf8)
    if not path.parameters:
        return Recipient(address)
    return Recipient(address, _reports(path.parameters), _original(path.parameters))


def checked_address(address: str, field: str, *, smtputf8: bool) -> str:
    """The address as SMTP writes it. Raises SubmissionRefused if it is none."""
    if route := _ROUTE.match(address):
        address = address[route.end() :]
    if not address.isascii() and not smtputf8:
        raise _bad(field, "the address is not ASCII", "use SMTPUTF8", 553, "5.6.7")
    found = smtp_address(address)
    local = address.rpartition("@")[0]
    if found is None or len(local.encode()) > LONGEST_LOCAL or len(address.encode()) > LONGEST_PATH:
        raise _bad(field, "this is not a mail address", "give one such as <mara@lindqvist.example>", 553, "5.1.3")
    return str(found)


def release_time(moment: datetime, now: datetime, field: str) -> datetime | None:
    """When a mail may leave that is to be sent at this time; None if it is over. Raises if it is too far ahead."""
    if moment - now > LONGEST_HOLD:
        problem = f"the mail is to leave after {moment:%Y-%m-%d %H:%M} UTC"
        raise _bad(field, problem, f"use a time within {LONGEST_HOLD.days} days", 501)
    return moment if moment > now else None


def _path(arguments: str, word: str, known: frozenset[str]) -> Path:
    found = _PATH.fullmatch(arguments)
    command = "MAIL" if word == "FROM" else "RCPT"
    if found is None or found[1].upper() != word:
        raise _bad(command, "the syntax is wrong", f"send {command} {word}:<address>", 501, "5.5.4")
    return Path(found[2], _parameters(found[3], command, known) if found[3] else {})


def _parameters(text: str, command: str, known: frozenset[str]) -> dict[str, str | None]:
    given: dict[str, str | None] = {}
    for word in text.split():
        found = _PARAMETER.fullmatch(word)
        name = "" if found is None else found[1].upper()
        if found is None or name in given:
            raise _bad(command, "a parameter is malformed, or given twice", "check the parameters", 501, "5.5.4")
        if name not in known:
            raise _bad(command, "a parameter is not known here", "use those that EHLO lists", 555, "5.5.4")
        given[name] = found[2]
    return given


def _flag(given: Mapping[str, str | None], name: str) -> bool:
    if given.get(name) is not None:
        raise _bad("MAIL", f"{name} has no value", "leave the value out", 501, "5.5.4")
    return name in given


def _number(given: Mapping[str, str | None], name: str) -> int | None:
    if name not in given:
        return None
    if not _NUMBER.fullmatch(text := given[name] or ""):
        raise _bad("MAIL", f"{name} is not a number", "give a number", 501, "5.5.4")
    return int(text)


def _hold(given: Mapping[str, str | None], now: datetime) -> datetime | None:
    """When the mail may leave (RFC 4865)."""
    if "HOLDFOR" in given and "HOLDUNTIL" in given:
        raise _bad("MAIL", "there is both HOLDFOR and HOLDUNTIL", "use one of them", 501, "5.5.4")
    if (seconds := _number(given, "HOLDFOR")) is not None:
        most = int(LONGEST_HOLD.total_seconds())
        if seconds > most:
            raise _bad("MAIL", "HOLDFOR is too long", f"use at most {most} seconds", 501, "5.5.4")
        return release_time(now + timedelta(seconds=seconds), now, "MAIL")
    if "HOLDUNTIL" in given:
        return release_time(read_time(given["HOLDUNTIL"] or "", "MAIL"), now, "MAIL")
    return None


def read_time(text: str, field: str) -> datetime:
    """A time with its offset, such as 2026-11-20T08:00:00Z."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise _bad(field, "this is not a time", "give one with its offset, such as 2026-11-20T08:00:00Z", 501, "5.5.4")
    return moment


def _reports(given: Mapping[str, str | None]) -> tuple[Notify, ...]:
    if "NOTIFY" not in given:
        return ()
    words = [word.lower() for word in (given["NOTIFY"] or "").split(",")]
    known = all(word in _REPORTS for word in words) and len(set(words)) == len(words)
    if not known or ("never" in words and len(words) > 1):
        remedy = "use NEVER, or some of SUCCESS, FAILURE and DELAY"
        raise _bad("RCPT", "NOTIFY is malformed", remedy, 501, "5.5.4")
    return cast("tuple[Notify, ...]", tuple(words))


def _original(given: Mapping[str, str | None]) -> str | None:
    """The original recipient, such as rfc822;mara+shop@lindqvist.example, with xtext decoded."""
    text = given.get("ORCPT")
    if "ORCPT" not in given:
        return None
    kind, mark, written = (text or "").partition(";")
    address = _in_ascii(written) if kind.lower() == "utf-8" else _decode_xtext(written)
    if not mark or not address or not _NAME.fullmatch(kind) or len(address) > LONGEST_ORIGINAL:
        raise _bad("RCPT", "ORCPT is malformed", "give it as rfc822;address, in xtext (RFC 3461)", 501, "5.5.4")
    return f"{kind};{address}"


def _in_ascii(text: str) -> str:
    """An address of the type utf-8 in the form for servers without SMTPUTF8 (RFC 6533, 3)."""
    return "".join(each if each.isascii() else f"\\x{{{ord(each):X}}}" for each in text)


def _decode_xtext(text: str) -> str:
    """The text that is written as xtext; empty if it is not, or not printable."""
    if not _XTEXT.fullmatch(text):
        return ""
    octets = _HEX.sub(lambda found: bytes.fromhex(found[1].decode()), text.encode())
    try:
        decoded = octets.decode()
    except UnicodeDecodeError:
        return ""
    return decoded if decoded.isprintable() else ""


def _xtext(given: Mapping[str, str | None], name: str, longest: int) -> str | None:
    if name not in given:
        return None
    decoded = _decode_xtext(given[name] or "")
    if not 0 < len(decoded) <= longest:
        remedy = f"give up to {longest} printable characters, in xtext (RFC 3461)"
        raise _bad("MAIL", f"{name} is malformed", remedy, 501, "5.5.4")
    return decoded


def _bad(field: str, problem: str, remedy: str, code: int, status: str = "5.5.4") -> SubmissionRefused:
    return SubmissionRefused(field, problem, remedy, code, status)
