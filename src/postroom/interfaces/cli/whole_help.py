"""Help in which the summaries of commands are wrapped, never cut off."""

from typing import Any

from typer.core import TyperGroup


class WholeHelp(TyperGroup):
    """A group of commands that lists each with its whole summary."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        rows = [(name, _summary(command)) for name, command in self.commands.items() if not command.hidden]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)


def _summary(command: Any) -> str:
    """The first paragraph of a command's help."""
    text = str(command.help or "").split("\n\n")[0]
    return " ".join(text.split())
