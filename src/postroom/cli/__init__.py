"""The command line: `postroom`. It parses, asks the services, and shows; it decides nothing."""

from postroom.cli.application import Application
from postroom.cli.root import run

__all__ = ["Application", "run"]
