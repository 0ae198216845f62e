"""Operations on each interface of the running product, and those whose access differs between interfaces."""

import asyncio
import tempfile
from pathlib import Path

from typer.core import TyperGroup

from postroom.interfaces.cli.root import command_tree
from postroom.interfaces.http.mcp.registry import ALL_TOOLS
from postroom.store.engine.opening import open_database
from support.all_commands import commands
from support.clocks import ManualClock
from support.house.figures import Section
from support.same_access import ONLY_FORMS, ONLY_TOOLS, declared_forms, forms_of, operations, tools_that_differ
from support.signed_in import running_pages


def interfaces() -> Section:
    return asyncio.run(_count())


async def _count() -> Section:
    with tempfile.TemporaryDirectory(prefix="postroom-house-") as folder:
        database = await open_database(Path(folder))
        async with running_pages(database, ManualClock(), Path(folder)) as running:
            forms = forms_of(running)
        await database.close()
    differing = tools_that_differ()
    numbers = {
        "commands": sum(not isinstance(command, TyperGroup) for _, command in commands(command_tree())),
        "operations of the API": len(operations()),
        "tools over MCP": len(ALL_TOOLS),
        "forms on pages": len(forms),
        "tools that are an operation of the API": len(ALL_TOOLS) - len(ONLY_TOOLS),
        "forms that an operation declares": len(declared_forms()),
        "only over MCP": len(ONLY_TOOLS),
        "only on pages": len(ONLY_FORMS),
        "pairs whose access differs": len(differing),
    }
    return Section("Operations by interface", numbers, [f"{one} ≠ {other}" for one, other in differing], True)
