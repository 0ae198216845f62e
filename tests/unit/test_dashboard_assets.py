"""The build hook that fetches what the dashboard runs in the browser."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from support.axe import ROOT, build_hook

hook: Any = build_hook()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name in ("package.json", "package-lock.json"):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


@pytest.fixture
def npm(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """An npm that lays out the wanted files, and remembers how it was called."""
    calls: list[list[str]] = []

    def install(arguments: list[str], folder: Path) -> tuple[int, str]:
        calls.append(arguments)
        for inside in hook.WANTED:
            target = folder / "node_modules" / inside
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(f"content of {inside}")
        return 0, ""

    monkeypatch.setattr(hook, "_npm", install)
    return calls


def vendor(checkout: Path) -> Path:
    return checkout / hook.VENDOR


def test_only_what_pages_need_is_copied_and_no_script_of_a_package_runs(checkout: Path, npm: list[list[str]]) -> None:
    assert hook.provide(checkout)
    assert {path.name for path in vendor(checkout).iterdir()} == {*hook.WANTED.values(), "manifest.json"}
    assert {"ci", "--ignore-scripts", "--omit=dev"} <= set(npm[0])


def test_an_unchanged_lock_fetches_nothing(checkout: Path, npm: list[list[str]]) -> None:
    assert hook.provide(checkout)
    assert not hook.provide(checkout)
    assert len(npm) == 1


def test_only_a_build_that_must_fetch_them_requires_node(checkout: Path, npm: list[list[str]]) -> None:
    """An sdist brings them along."""
    for target in ("wheel", "sdist"):
        shutil.rmtree(vendor(checkout), ignore_errors=True)
        build = hook.AssetsHook(str(checkout), {}, None, None, "", target)
        assert build.dependencies() == [hook.NODE]
        build.initialize("standard", {})
        assert build.dependencies() == []


@pytest.mark.parametrize("damage", ["lock", "file", "missing", "manifest"])
def test_whatever_does_not_match_is_fetched_again(checkout: Path, npm: list[list[str]], damage: str) -> None:
    hook.provide(checkout)
    match damage:
        case "lock":
            (checkout / "package-lock.json").write_text("{}")
        case "file":
            (vendor(checkout) / "htmx.min.js").write_text("tampered")
        case "missing":
            (vendor(checkout) / "hx-sse.min.js").unlink()
        case _:
            (vendor(checkout) / "manifest.json").write_text("[]")
    assert hook.provide(checkout)
    assert not hook.provide(checkout)
    assert (vendor(checkout) / "htmx.min.js").read_text() == "content of htmx.org/dist/htmx.min.js"


def test_a_file_that_the_packages_do_not_hold_is_named(
    checkout: Path, npm: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def install(*_: object, **__: object) -> Path:
        return checkout / "nothing"

    monkeypatch.setattr(hook, "install", install)
    with pytest.raises(hook.AssetsError, match=r"hold no htmx\.org/dist/htmx\.min\.js"):
        hook.provide(checkout)


def test_without_a_network_the_error_says_what_to_do(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("npm_config_registry", "http://127.0.0.1:1/")
    monkeypatch.setenv("npm_config_cache", str(checkout / "cache"))
    monkeypatch.setenv("npm_config_fetch_retries", "0")
    with pytest.raises(hook.AssetsError, match=r"check the network connection(.|\n)*ECONNREFUSED"):
        hook.provide(checkout)
    assert not vendor(checkout).exists()


def test_the_lock_pins_every_package_by_hash_and_names_no_address() -> None:
    text = (ROOT / "package-lock.json").read_text(encoding="utf-8")
    packages = {name: entry for name, entry in json.loads(text)["packages"].items() if name}
    assert packages
    assert all(entry["integrity"].startswith("sha512-") for entry in packages.values())
    assert "resolved" not in text
    assert "://" not in text
    wanted = json.loads((ROOT / "package.json").read_text(encoding="utf-8"))
    versions = [*wanted["dependencies"].values(), *wanted["devDependencies"].values()]
    assert all(version[0].isdigit() for version in versions)
