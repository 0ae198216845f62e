"""The whole product, as `postroom serve` runs it, on an emulated mailbox, until it is killed.

    python -m support.crash.product_process --data-dir FOLDER [--url URL] --gmail URL --token TOKEN --email ADDRESS

It announces `ready`.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from postroom.compose.application import PostroomApplication
from postroom.settings.reading import load_settings
from support.fork_server import run_as_child
from support.processes import announce


async def main(arguments: argparse.Namespace) -> None:
    settings = load_settings(
        {
            "data_dir": arguments.data_dir,
            "database_url": arguments.url,
            "gmail.base_url": arguments.gmail,
            "gmail.token": arguments.token,
            "gmail.poll_s": 1,
            "gmail.units_per_minute": 10_000_000,
            "account.email": arguments.email,
            "web.port": 0,
            "safety.trust_rules": True,
            "safety.hourly_cap": 1_000_000,
            "outbound.restore_settle_s": 0,
            "jobs.lease_s": 3,
            "jobs.heartbeat_s": 1,
            "jobs.poll_s": 0.1,
            "disk_reserve_mib": 0,
        },
        environ={},
        cwd=arguments.data_dir,
    )
    await PostroomApplication().serve(settings, ready=lambda _address: announce("ready"), invite=lambda _link: None)


def parse(words: Sequence[str]) -> argparse.Namespace:
    parser: Any = argparse.ArgumentParser()
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--url")
    parser.add_argument("--gmail", required=True)
    parser.add_argument("--token", required=True)
    parser.add_argument("--email", required=True)
    return parser.parse_args(words)


if __name__ == "__main__":
    run_as_child(main, parse)
