"""The description of the API, which the API itself answers."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from postroom.core.access import ANYBODY
from postroom.operations.nouns import SESSION
from postroom.operations.operation import get
from postroom.operations.registry import nouns

Json = dict[str, Any]
nouns()  # whatever it describes is declared before it


@dataclass(frozen=True, slots=True)
class OpenApiAnswer:
    """The description of this API in OpenAPI 3.1."""

    openapi: str
    info: Json
    security: Sequence[Json]
    tags: Sequence[Json]
    paths: Json
    components: Json


@SESSION.operation(ANYBODY, get("/openapi.json"))
async def read_openapi() -> OpenApiAnswer:
    """The description of this API in OpenAPI 3.1."""
    from postroom.interfaces.http.api.openapi import openapi  # few ask

    # In a thread, so that the server still answers while it is made.
    return OpenApiAnswer(**await asyncio.to_thread(openapi))
