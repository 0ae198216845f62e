"""axe-core, the accessibility checker, in the version of package-lock.json. Only tests use it; it is not in the
wheel."""

import importlib.util
import shutil
import tempfile
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from playwright.async_api import Page

ROOT = Path(__file__).parents[2]
CACHE = ROOT / "build" / "axe-core"


def build_hook() -> ModuleType:
    """The build hook as a module; hatchling loads it by its path too."""
    spec = importlib.util.spec_from_file_location("postroom_assets_hook", ROOT / "build_hooks" / "assets.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def axe_script() -> str:
    """The checker's source, fetched once for every state of the lock."""
    hook = build_hook()
    kept = CACHE / f"{hook.lock_digest(ROOT)[:16]}.js"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="postroom-axe-") as scratch:
            fetched = hook.install(ROOT, Path(scratch), dev=True) / "axe-core" / "axe.min.js"
            shutil.copyfile(fetched, kept.with_suffix(".part"))
            kept.with_suffix(".part").replace(kept)
    return kept.read_text(encoding="utf-8")


async def violations(page: Page) -> list[str]:
    """What axe-core finds on this page, one line each."""
    # Evaluated by the debugger, not by the page: the page's own policy stays as strict as it ships.
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(axe_script())
    report: dict[str, Any] = await page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    assert report["passes"], "axe-core checked nothing"
    return [
        f"{found['id']}: {found['help']}: {[node['html'] for node in found['nodes']]}" for found in report["violations"]
    ]
