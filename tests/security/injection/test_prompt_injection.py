"""Hostile mail, and a model that obeys all of it: nothing irreversible is done, nobody is written to, nothing leaks."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from conftest import new_sqlite
from postroom.store.database import Database
from security.injection.corpus import HOSTILE, SEED, Corpus, build_corpus
from security.injection.findings import findings
from security.injection.road import go
from support.canaries import Canaries, Watch, watching

PROVIDERS = ("openai", "anthropic")


@pytest.fixture
def canaries() -> Canaries:
    return Canaries()


@pytest.fixture
def watch(canaries: Canaries) -> Iterator[Watch]:
    with watching(canaries) as running:
        yield running


@pytest.fixture
async def sqlite(migrated_sqlite: Path, tmp_path: Path) -> AsyncIterator[Database]:
    opened = await new_sqlite(tmp_path, migrated_sqlite)
    yield opened
    await opened.close()


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_an_obedient_model_can_be_made_to_do_nothing_that_must_not_be(
    provider: str, sqlite: Database, tmp_path: Path, canaries: Canaries, watch: Watch
):
    print(f"seed {SEED}")
    whole = build_corpus(canaries)
    half = Corpus(whole.hostile[PROVIDERS.index(provider) :: 2], whole.harmless)
    outcome = await go(half, provider, sqlite, tmp_path, watch)
    import collections
    print(collections.Counter((r["action_type"], r["state"]) for r in outcome.actions))
    print(collections.Counter((r["source"], r["action_type"]) for r in outcome.decisions))
    print(outcome.calls, len(outcome.asked))
    assert findings(outcome) == {}
    assert set(outcome.obeyed) == {each.word for each in half.hostile}
