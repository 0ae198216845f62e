"""`postroom submission` and `postroom serve` as real processes that accept mail."""

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import trustme

from postroom.store.engine.opening import open_database
from postroom.store.outbound.senders import load_sender
from postroom.system.wall_clock import wall_clock
from support.patience import PATIENCE_S
from support.submission import ADA, HOST, added_sender, authority, connected, queued_as

POSTROOM = [sys.executable, "-c", "from postroom.app import main; main()"]


def certificate(folder: Path) -> dict[str, str]:
    issued: trustme.LeafCert = authority().issue_cert(HOST)
    issued.private_key_pem.write_to_path(folder / "key.pem")
    for each in issued.cert_chain_pems:
        each.write_to_path(folder / "certificate.pem", append=True)
    return {
        "POSTROOM_SUBMISSION_CERTIFICATE_FILE": str(folder / "certificate.pem"),
        "POSTROOM_SUBMISSION_KEY_FILE": str(folder / "key.pem"),
    }


@contextlib.asynccontextmanager
async def started(folder: Path, *words: str, **settings: str) -> AsyncGenerator[asyncio.subprocess.Process]:
    environment = {**os.environ, **settings}
    process = await asyncio.create_subprocess_exec(
        *POSTROOM,
        *words,
        "--data-dir",
        str(folder),
        "--json",
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        await asyncio.wait_for(process.communicate(), PATIENCE_S)


async def addresses(process: asyncio.subprocess.Process) -> list[int]:
    assert process.stdout is not None
    line = await asyncio.wait_for(process.stdout.readline(), PATIENCE_S)
    return [int(each.rpartition(":")[2]) for each in json.loads(line)["url"].split()]


async def test_the_process_accepts_mail_over_both_ports_and_stops_cleanly(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    database = await open_database(folder)
    await added_sender(database)
    ports = {"POSTROOM_SUBMISSION_PORT": "0", "POSTROOM_SUBMISSION_TLS_PORT": "0"}
    async with started(folder, "submission", **certificate(tmp_path), **ports) as process:
        starttls, implicit = await addresses(process)
        async with connected(implicit, tls=True) as client:
            await client.begin()
            queued_as(await client.deliver())
        async with connected(starttls) as client:
            await client.ask("EHLO client.example")
            await client.encrypt()
            await client.begin()
            queued_as(await client.deliver())
            process.terminate()
            assert (await client.reply()).startswith("421 4.3.2")
        assert await asyncio.wait_for(process.wait(), PATIENCE_S) == 0
    assert (await database.run(load_sender(ADA, wall_clock()))).accepted_today == 2
    await database.close()


async def test_beyond_loopback_it_does_not_start_without_a_certificate(tmp_path: Path) -> None:
    async with started(tmp_path / "data", "submission", POSTROOM_SUBMISSION_HOST="0.0.0.0") as process:
        _, errors = await asyncio.wait_for(process.communicate(), PATIENCE_S)
        assert process.returncode == 2
        assert b"submission.certificate_file" in errors
