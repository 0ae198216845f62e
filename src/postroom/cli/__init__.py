"""The command line: `postroom`. It parses, asks the services, and shows; it decides nothing."""

from postroom.cli.root import run

__all__ = ["run"]
