"""`python -m bench`: install the peers, measure every claim beside them, print one table.

Ends with 0 when every goal is met, 1 when one is not or a subject could not be measured. Quick runs are smoke runs:
their figures prove nothing, so a missed goal does not fail them. Whatever happens, it ends with its table: who crashed,
hung or said nothing that can be read has a line without a figure, and the reason follows.
"""

import argparse
import json
import os
import platform
import signal
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import FrameType

from . import ground, install, table
from .claims import CLAIMS, WITHOUT_PEERS
from .rounds import EVERYBODY, Run, reason
from .sizes import FULL, QUICK
from .subjects import field_of

Claims = Mapping[str, Callable[[Run], list[table.Line]]]


def main() -> int:
    options = _options()
    chosen = [name for name in CLAIMS if not options.only or any(name.startswith(only) for only in options.only)]
    if not chosen:
        sys.exit(f"no claim is named {', '.join(options.only)}; there are {', '.join(CLAIMS)}")
    signal.signal(signal.SIGTERM, _end)
    lines = measured(chosen, lambda: _running(options, chosen))
    print(_circumstances(options), end="\n\n")
    table.show(lines)
    for complaint in table.complaints(lines):
        print(f"\nnot measured: {complaint}", file=sys.stderr)
    if options.json:
        record = {"circumstances": _circumstances(options), "lines": table.as_json(lines)}
        options.json.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n")
    return _verdict(lines, quick=options.quick)


def measured(
    chosen: list[str], running: Callable[[], AbstractContextManager[Run]], claims: Claims = CLAIMS
) -> list[table.Line]:
    """The lines of all claims. However the run ends, by Ctrl-C too, those that are missing say why."""
    lines: list[table.Line] = []
    left = list(chosen)
    try:
        with running() as run:
            while left:
                lines += run.claim(left[0], claims[left[0]])
                del left[0]
    except BaseException as error:
        print(f"the run ended early: {reason(error)}", file=sys.stderr, flush=True)
        lines += [table.Line(name, EVERYBODY, error=f"{name}: {reason(error)}") for name in left]
    return lines


@contextmanager
def _running(options: argparse.Namespace, chosen: list[str]) -> Generator[Run]:
    field = field_of(install.peers() if WITHOUT_PEERS.issuperset(chosen) else install.install())
    with ground.prepared(options.prepared) as here:
        print(_circumstances(options), file=sys.stderr, flush=True)
        yield Run(here, field, QUICK if options.quick else FULL, options.rounds, frozenset(options.subject))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Every speed claim, beside its peers.")
    parser.add_argument("--rounds", type=int, default=3, help="measurements of each subject (3)")
    parser.add_argument("--quick", action="store_true", help="small sizes: proves that it runs, not how fast it is")
    parser.add_argument(
        "--only", action="append", default=[], metavar="NAME", help=f"one of {', '.join(CLAIMS)}, or how it starts"
    )
    parser.add_argument(
        "--subject", action="append", default=[], metavar="NAME", help="only these: postroom, raw, pgqueuer, …"
    )
    parser.add_argument(
        "--prepared",
        type=Path,
        metavar="FOLDER",
        help="keep the server and the databases of `pages` there, and use those of the last time",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every sample there too")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")
    return options


def _end(number: int, _frame: FrameType | None) -> None:
    """A polite kill ends the run as Ctrl-C does, so that the server stops and the folder goes."""
    sys.exit(128 + number)


def _circumstances(options: argparse.Namespace) -> str:
    scale = "quick sizes (figures prove nothing)" if options.quick else "full sizes"
    return (
        f"{scale}, rounds: {options.rounds}, cores: {os.cpu_count()}, Python {platform.python_version()}, "
        f"fsync of 4 KiB: {ground.fsync_milliseconds():.2f} ms, PostgreSQL: {', '.join(ground.SETTINGS)}"
    )


def _verdict(lines: list[table.Line], *, quick: bool) -> int:
    if any(line.error is not None for line in lines):
        return 1
    missed = any(line.comparison is not None and line.comparison.met is False for line in lines)
    return 1 if missed and not quick else 0


if __name__ == "__main__":
    sys.exit(main())
