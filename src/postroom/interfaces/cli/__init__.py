"""The command line, `postroom`: parses arguments, calls `operations` and prints the result; it decides nothing."""

from postroom.interfaces.cli.root import run

__all__ = ["run"]
