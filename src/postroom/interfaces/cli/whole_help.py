"""Help in which the summaries of commands are wrapped, never cut off."""

from typing import Any

from typer.core import TyperGroup

from postroom.core.errors import BadInput
from postroom.core.suggestions import did_you_mean

LONGEST_SHOWN = 80


class WholeHelp(TyperGroup):
    """A group of commands that lists each with its whole summary."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = args[0]
        if name[:1] != "-" and name not in self.commands and not ctx.resilient_parsing:
            known = [each for each, command in self.commands.items() if not command.hidden]
            options = {"--help", *(each for parameter in self.params for each in parameter.opts)}
            hint = did_you_mean(name, known, f"`{ctx.command_path} --help` lists them")
            if f"--{name}" in options:
                hint = f"did you mean --{name}?"
            raise BadInput(name[:LONGEST_SHOWN], f"is not a command of `{ctx.command_path}`", hint)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        rows = [(name, _summary(command)) for name, command in self.commands.items() if not command.hidden]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)


def _summary(command: Any) -> str:
    """The first paragraph of a command's help."""
    text = str(command.help or "").split("\n\n")[0]
    return " ".join(text.split())
