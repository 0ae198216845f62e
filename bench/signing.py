"""The process in which one side signs mail: `python -m bench.signing NAME COUNT`.

Every side signs the same messages of 4 KB with the same RSA key of 2048 bits, relaxed/relaxed. dkimpy checks a sample
of the signatures of either. Ours go the way they go in delivery: 50 at once, from the
event loop to a thread and back.
"""

import asyncio
import base64
import random
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import dkim
import uvloop
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from postroom.core.outbound.destinations import SigningKey
from postroom.outbound.smtp.dkim import Signer

from .order import Outcome, answer

DISTINCT, CHECKED = 100, 20
AT_ONCE = 50
PRIVATE = generate_private_key(65537, 2048)
PEM = PRIVATE.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
PUBLIC = PRIVATE.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
HEADERS = [b"from", b"to", b"subject", b"date", b"message-id", b"mime-version", b"content-type"]


def messages() -> list[bytes]:
    rng = random.Random(2026)
    words = ["quarterly", "report", "Thursday", "and", "the", "a", "please", "read", "attached", "before"]
    lines = [" ".join(rng.choices(words, k=10)) for _ in range(60)]
    return [
        "\r\n".join(
            [
                "From: Mara <mara@sender.example>",
                f"To: ada{number}@example.org",
                f"Subject: number {number}",
                "Date: Sun, 15 Nov 2026 08:00:00 +0000",
                f"Message-ID: <{number}@sender.example>",
                "MIME-Version: 1.0",
                "Content-Type: text/plain",
                "",
                *rng.sample(lines, len(lines)),
                "",
            ]
        ).encode()
        for number in range(DISTINCT)
    ]


class OneKey:
    async def keys_of(self, domain: str) -> Sequence[SigningKey]:
        return [SigningKey(domain, "s1", "rsa-sha256", PEM)]


def ours(mails: Sequence[bytes]) -> list[bytes]:
    async def signed() -> list[bytes]:
        with ThreadPoolExecutor(1) as threads:
            signer = Signer(OneKey(), lambda: datetime.now(UTC), threads)
            done: list[bytes] = []
            for first in range(0, len(mails), AT_ONCE):
                some = mails[first : first + AT_ONCE]
                done += await asyncio.gather(*(signer.signed(mail, "mara@sender.example") for mail in some))
            return done

    return uvloop.run(signed())


def dkimpy(mails: Sequence[bytes]) -> list[bytes]:
    options: dict[str, Any] = {"canonicalize": (b"relaxed", b"relaxed"), "include_headers": HEADERS}
    return [dkim.sign(mail, b"s1", b"sender.example", PEM, **options) + mail for mail in mails]


def record(name: bytes, timeout: int = 5) -> bytes:
    """The key in the DNS."""
    return b"v=DKIM1; k=rsa; p=" + base64.b64encode(PUBLIC)


SIDES: dict[str, Callable[[Sequence[bytes]], list[bytes]]] = {"postroom": ours, "dkimpy": dkimpy}


def main(name: str, count: int) -> Outcome:
    """`finished` counts the signed messages, if all of the sample are valid. Time is that of all threads together."""
    given = messages()
    work = [given[number % DISTINCT] for number in range(count)]
    started = time.process_time()
    signed = SIDES[name](work)
    seconds = time.process_time() - started
    valid = all(dkim.verify(mail, dnsfunc=record) for mail in signed[:CHECKED])
    return Outcome(seconds=seconds, handled=count, finished=len(signed) if valid else 0)


if __name__ == "__main__":
    answer(main(sys.argv[1], int(sys.argv[2])).to_json())
