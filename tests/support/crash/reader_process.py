"""A process that reads from a SQLite database with a plain connection, and is frozen in the middle of it.

python -m support.crash.reader_process --data-dir FOLDER
"""

import argparse
import os
import signal
from pathlib import Path
from typing import Any

from postroom.store.engine.opening import FILE
from postroom.store.engine.sqlite_connection import connect
from support.processes import announce


def main(arguments: argparse.Namespace) -> None:
    connection = connect(arguments.data_dir / FILE, read_only=True)
    connection.execute("BEGIN")
    found = connection.execute("SELECT count(*) FROM jobs").fetchall()[0][0]
    announce("reads", found)
    os.kill(os.getpid(), signal.SIGSTOP)
    again = connection.execute("SELECT count(*) FROM jobs").fetchall()[0][0]
    connection.close()
    announce("done", again == found)


def parse() -> argparse.Namespace:
    parser: Any = argparse.ArgumentParser()
    parser.add_argument("--data-dir", type=Path, required=True)
    return parser.parse_args()


if __name__ == "__main__":
    main(parse())
