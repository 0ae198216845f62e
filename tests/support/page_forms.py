"""Submit forms as our own page does, where sign-in is off and everyone is the owner."""

from collections.abc import Mapping

import httpx2

from postroom.interfaces.dashboard.visiting import OWNER
from postroom.operations.people.form_tokens import masked_form_token

OWN_PAGE = {"sec-fetch-site": "same-origin"}


async def submit(
    client: httpx2.AsyncClient,
    address: str,
    fields: Mapping[str, str | list[str]] | None = None,
    *,
    headers: Mapping[str, str] = OWN_PAGE,
    back: str = "/",
) -> httpx2.Response:
    data = {"form_token": masked_form_token(OWNER), "back": back, **(fields or {})}
    return await client.post(address, data=data, headers=dict(headers))
