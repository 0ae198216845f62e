"""Whatever is sent to the JSON API: no 5xx, what is wrong is refused, and every answer is as its description says.

Requests are made by schemathesis from the description, right ones and wrong ones, and sent to a real server. `make
soak` sends many more, also on PostgreSQL.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import requests
import schemathesis
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode, checks

from postroom.core.roles import Role
from postroom.interfaces.http.api.openapi import openapi, plain_path
from postroom.interfaces.http.api.operation import PREFIX, ApiOperation
from postroom.interfaces.http.api.registry import NOUNS, ApiNoun
from postroom.store.engine.database import Database
from postroom.store.engine.opening import open_database
from support.api import RunningApi, known_ids, served_in_thread
from support.patience import PATIENCE_S
from support.scale import SOAK, scale
from support.sqlite import new_sqlite

CHECKED = [
    checks.not_a_server_error,
    checks.negative_data_rejection,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]


class Fuzzed(NamedTuple):
    """A running server, and the headers of those who may call everything: a token, and a session."""

    address: str
    token: Mapping[str, str]
    session: Mapping[str, str]
    known: Mapping[str, Any]


async def callers(api: RunningApi) -> Fuzzed:
    admin, mara = await api.token("admin"), await api.person()
    form_token = await mara.form_token()
    cookies = "; ".join(f"{name}={value}" for name, value in mara.visiting.cookies.items())
    session = {"Cookie": cookies, "X-Form-Token": form_token, "Sec-Fetch-Site": "same-origin"}
    known = {name: str(value) for name, value in known_ids(api).items()}
    return Fuzzed(api.pages.address, {"Authorization": f"Bearer {admin.text}"}, session, known)


@pytest.fixture(scope="module", params=["sqlite", "postgres"] if SOAK else ["sqlite"])
def fuzzed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, migrated_sqlite: Path
) -> Iterator[Fuzzed]:
    folder = tmp_path_factory.mktemp("fuzzed")
    url: str | None = request.getfixturevalue("lasting_postgres_url") if request.param == "postgres" else None

    async def opened() -> Database:
        return await (new_sqlite(folder, migrated_sqlite) if url is None else open_database(folder, url))

    with served_in_thread(opened, folder, callers) as running:
        yield running


@pytest.mark.parametrize("noun", NOUNS, ids=lambda noun: noun.title.replace(" ", "-"))
def test_whatever_is_sent_is_answered_as_described(fuzzed: Fuzzed, noun: ApiNoun) -> None:
    described, http, count = _described(), requests.Session(), len(noun.operations)

    # Without shrinking, which would send thousands of requests: the seed is printed.
    @settings(max_examples=scale(1 + count // 2, 150 * count), phases=[Phase.generate])
    @given(st.data())
    def send(data: st.DataObject) -> None:
        operation = data.draw(st.sampled_from(noun.operations))
        mode = data.draw(st.sampled_from(GenerationMode))
        declared = described[f"{PREFIX}{plain_path(operation.path)}"][operation.method]
        case = data.draw(declared.as_strategy(mode, **_path(data, operation, fuzzed)))
        case.headers.pop("Authorization", None)
        case.cookies.clear()
        headers = fuzzed.token if Role.ADMIN in operation.access.tokens else fuzzed.session
        response = case.call(base_url=fuzzed.address, session=http, headers=dict(headers), timeout=PATIENCE_S)
        case.validate_response(response, checks=CHECKED)
        assert response.status_code != 401, response.text

    try:
        send()
    finally:
        http.close()


@cache
def _described() -> Any:
    return schemathesis.openapi.from_dict(openapi())


def _path(data: st.DataObject, operation: ApiOperation, fuzzed: Fuzzed) -> dict[str, Any]:
    """Name something that exists, half of the time."""
    known = {name: value for name, value in fuzzed.known.items() if f"{{{name}}}" in operation.path}
    return {"path_parameters": known} if known and data.draw(st.booleans()) else {}
