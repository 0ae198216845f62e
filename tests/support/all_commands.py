"""Every command of the command line, loaded."""

from collections.abc import Iterator

from typer.core import TyperCommand, TyperGroup

from postroom.interfaces.cli.root import Deferred


def commands(group: TyperGroup, above: str = "postroom") -> Iterator[tuple[str, TyperCommand | TyperGroup]]:
    """Every command with its whole name, groups before what is in them."""
    yield above, group
    for name, found in group.commands.items():
        command = found.load() if isinstance(found, Deferred) else found
        assert isinstance(command, (TyperCommand, TyperGroup))
        if isinstance(command, TyperGroup):
            yield from commands(command, f"{above} {name}")
        else:
            yield f"{above} {name}", command
