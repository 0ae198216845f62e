"""The contract of Postroom as text: the same on every machine, at every time and in every order of tests."""

import json
from pathlib import Path
from typing import Any

from postroom.core.roles import Role
from postroom.interfaces.cli.root import command_tree
from postroom.interfaces.http.api.openapi import openapi
from postroom.store.engine.opening import open_database
from support.all_commands import commands
from support.clocks import ManualClock
from support.submission import added_sender
from support.switchboard import served, services_on

WIDTH = 100
"""The width of the terminal in which help is printed."""


def pretty(value: object) -> str:
    return f"{json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False)}\n"


def openapi_text() -> str:
    return pretty({**openapi(), "info": {**openapi()["info"], "version": "VERSION"}})


async def tools_text(folder: Path) -> str:
    """The answer to `tools/list` for every role, over HTTP: each tool once, with the roles that see it."""
    database, clock = await open_database(folder), ManualClock()
    found: dict[str, dict[str, Any]] = {}
    try:
        sender = await added_sender(database, clock=clock)
        async with served(services_on(database, clock)) as server:
            for role in Role:
                identity = "webhook:ci" if role is Role.CONNECTOR else None
                token = await server.token(role, identity, sender_id=sender.id if role is Role.SENDER else None)
                async with server.client(token) as client:
                    for tool in (await client.list_tools()).tools:
                        seen = tool.model_dump(mode="json", by_alias=True, exclude_none=True)
                        known = found.setdefault(tool.name, {**seen, "roles": []})
                        assert {**known, "roles": []} == {**seen, "roles": []}, f"{role} sees another {tool.name}"
                        known["roles"].append(role.value)
    finally:
        await database.close()
    return pretty(found)


def command_help() -> str:
    """The help of every command, in a terminal of one width."""
    pages: list[str] = []
    for name, command in commands(command_tree()):
        context = command.make_context(name, [], resilient_parsing=True, terminal_width=WIDTH, max_content_width=WIDTH)
        pages.append(f"$ {name} --help\n{command.get_help(context).rstrip()}\n")
    return "\n\n".join(pages)
