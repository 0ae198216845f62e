"""Messages broken at random, reproducibly, as transport, bad software and malice do."""

import random
from collections.abc import Callable, Sequence

Mutation = Callable[[random.Random, bytes, Sequence[bytes]], bytes]


def mutated(rng: random.Random, messages: Sequence[bytes]) -> bytes:
    """One of the messages with one to four things done to it."""
    message = rng.choice(messages)
    for _ in range(rng.randint(1, 4)):
        message = rng.choice(MUTATIONS)(rng, message, messages)
    return message


def _place(rng: random.Random, message: bytes) -> int:
    """Anywhere, but often in the head."""
    return rng.randrange(min(len(message), rng.choice((2000, 10**9))) + 1)


def _flip_bytes(rng: random.Random, message: bytes, _: Sequence[bytes]) -> bytes:
    changed = bytearray(message)
    for _number in range(rng.randint(1, 40)):
        if changed:
            changed[_place(rng, message) % len(changed)] = rng.randrange(256)
    return bytes(changed)


def _cut(rng: random.Random, message: bytes, _: Sequence[bytes]) -> bytes:
    return message[: _place(rng, message)]


def _drop(rng: random.Random, message: bytes, _: Sequence[bytes]) -> bytes:
    at = _place(rng, message)
    return message[:at] + message[at + rng.randint(1, 500) :]


def _repeat(rng: random.Random, message: bytes, _: Sequence[bytes]) -> bytes:
    at = _place(rng, message)
    return message[:at] + message[at : at + rng.randint(1, 200)] * rng.randint(2, 200) + message[at:]


def _splice(rng: random.Random, message: bytes, messages: Sequence[bytes]) -> bytes:
    other = rng.choice(messages)
    return message[: _place(rng, message)] + other[_place(rng, other) :]


def _insert(rng: random.Random, message: bytes, _: Sequence[bytes]) -> bytes:
    at = _place(rng, message)
    return message[:at] + rng.choice(SCRAPS) * rng.choice((1, 1, 1, 50, 5000)) + message[at:]


def _shuffle_lines(rng: random.Random, message: bytes, _: Sequence[bytes]) -> bytes:
    lines = message.split(b"\n")
    start = rng.randrange(len(lines))
    block = lines[start : start + 30]
    rng.shuffle(block)
    return b"\n".join([*lines[:start], *block, *lines[start + 30 :]])


def _other_line_ends(rng: random.Random, message: bytes, _: Sequence[bytes]) -> bytes:
    return message.replace(b"\r\n", b"\n").replace(b"\n", rng.choice((b"\r\n", b"\r", b"\n\r", b"\r\r\n", b"")))


def _other_bytes(rng: random.Random, message: bytes, _: Sequence[bytes]) -> bytes:
    encoding = rng.choice(("utf-16", "utf-32", "utf-8"))
    return message.decode("latin-1").encode(encoding)


SCRAPS = (
    *(
        b"\0",
        b"\r",
        b"\n",
        b"\n\n",
        b"\r\n ",
        b":",
        b"--",
        b"\n--",
        b"=?utf-8?q?",
        b"?=",
        b"=?",
        b"\xff\xfe",
        b"<",
        b"&#",
    ),
    *(b"(", b'"', b"\\", b";", b",", b"<a@b>,", b"=0D=0A", b"\nContent-Type: multipart/mixed; boundary=x\n\n--x\n"),
    *(
        b"\nTo: ",
        b"\nFrom: ",
        b"\nContent-Type: text/html\n",
        b"\nContent-Transfer-Encoding: base64\n",
        b"<div>",
        b"<!--",
    ),
    *(b"; charset=utf-7", b"; boundary=", b"; filename*0*=utf-8''%00", b"\nContent-Type: message/rfc822\n\n"),
)
MUTATIONS: tuple[Mutation, ...] = (
    *(_flip_bytes, _cut, _drop, _repeat, _splice, _insert, _insert, _insert),
    *(_shuffle_lines, _other_line_ends, _other_bytes),
)
