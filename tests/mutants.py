"""Changes the core and the store's verbs in small wrong ways, one at a time, and tells which change no test notices.

    .venv/bin/python tests/mutants.py                                   a sample of all, the same each time
    .venv/bin/python tests/mutants.py --sample 50 --seed 3 core/retry   another sample, of one module
    .venv/bin/python tests/mutants.py --each 5                          five of every module, so that none is left out
    .venv/bin/python tests/mutants.py --all store/jobs                  every one of a module

Each change is made in a copy of the sources, and those tests run against the copy, on SQLite, that import the module
and call the function that is changed.
A change counts as noticed when a test fails, also by taking far more processor time than before. What survives is
either a test that is missing or a change that makes no difference: docs/decisions/0060-mutants.md has the known ones.
"""

import argparse
import ast
import compileall
import contextlib
import json
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from py_compile import PycInvalidationMode
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from support.mutation_sites import Mutant

HERE = Path(__file__).parent
ROOT = HERE.parent
SOURCES = ROOT / "src"
SUITES = ("unit", "conformance")
SAMPLE = 300
SEED = 2026
# What tests and sources import that is not ours: loaded once, before anything is forked.
LOADED = (
    *("pytest", "pytest_asyncio", "pytest_timeout", "hypothesis", "hypothesis.strategies", "apsw", "asyncpg", "orjson"),
    *("pydantic", "re2", "structlog", "httpx2", "starlette", "typer", "cryptography", "time_machine", "mcp"),
)
REWRITTEN = "ignore::pytest.PytestAssertRewriteWarning"
ARGUMENTS = ("-x", "--no-header", "-p", "no:xdist", "-k", "not postgres", "-W", REWRITTEN)
CPU_SPARE_S, CPU_TIMES = 20, 5
WALL_SPARE_S, WALL_TIMES = 60, 2  # only for who waits for ever, at no cost
NO_TESTS = 5
MOST_FILES = 6


@dataclass
class Module:
    """A file to change, and the tests that import it."""

    path: Path
    tests: list[str]
    cpu_s: float = 0.0
    wall_s: float = 0.0
    noticed: int = 0
    survivors: list[str] = field(default_factory=list[str])
    reached: dict[str, list[int]] = field(default_factory=dict[str, list[int]])

    @property
    def name(self) -> str:
        return str(self.path.relative_to(SOURCES / "postroom").with_suffix(""))


Site = tuple[Module, "Mutant"]


def main() -> int:
    options = _options()
    signal.signal(signal.SIGTERM, _stop)
    sys.path.insert(0, str(HERE))
    from support.mutation_sites import mutants_of

    modules = [
        module for module in _modules(options.files) if not options.only or module.name.startswith(tuple(options.only))
    ]
    sites = [(module, each) for module in modules for each in mutants_of(module.path.read_bytes())]
    chosen = _chosen(sites, options)
    print(f"{len(chosen)} of {len(sites)} changes in {len(modules)} modules, seed {options.seed}", flush=True)
    _load()
    with tempfile.TemporaryDirectory(prefix="postroom-mutants-") as folder:
        copy = Path(folder) / "src"
        shutil.copytree(SOURCES, copy, ignore=shutil.ignore_patterns("__pycache__"))
        # Compiled once, by content: a changed file is noticed even when its time and size are the same.
        compileall.compile_dir(copy, quiet=1, invalidation_mode=PycInvalidationMode.CHECKED_HASH)
        for module, each in chosen:
            if not module.tests or (module.cpu_s == 0.0 and not _baseline(module, copy)):
                module.survivors.append(f"{each} (no test imports it, or they fail as it is)")
            elif _survives(module, each, copy):
                module.survivors.append(str(each))
                print(f"SURVIVED {module.name} {each}", flush=True)
            else:
                module.noticed += 1
                print(f"noticed  {module.name} {each}", flush=True)
    return _report(modules)


def _stop(signal_number: int, _frame: object) -> None:
    sys.exit(128 + signal_number)


def _chosen(sites: list[Site], options: argparse.Namespace) -> list[Site]:
    """All changes, so many of each module, or so many of all together; seeded, so that they are the same each time."""
    if options.all:
        return sites
    if not options.each:
        return Random(options.seed).sample(sites, min(options.sample, len(sites)))
    chosen: list[Site] = []
    for name, group in groupby(sites, key=lambda site: site[0].name):
        own = list(group)
        chosen += Random(f"{options.seed} {name}").sample(own, min(options.each, len(own)))
    return chosen


def _survives(module: Module, each: "Mutant", copy: Path) -> bool:
    from support.mutation_reach import Only, function_at, reaching

    source = module.path.read_bytes()
    tests = reaching(module.reached, function_at(source, each.line))
    return not tests or _run(module, copy, each.applied_to(source), Only(tests)) == 0


def _baseline(module: Module, copy: Path) -> bool:
    """Whether the tests pass on the sources as they are; which of them call what; and what they cost, which bounds
    what a change may."""
    from support.mutation_reach import Reach, saying

    began = time.monotonic()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    written = copy.parent / "reached"
    well = _run(module, copy, saying(module.path.read_bytes()), Reach(written)) == 0
    module.reached = json.loads(written.read_text()) if well else {}
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    module.wall_s = time.monotonic() - began
    module.cpu_s = max(1.0, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    if not well:
        print(f"{module.name}: its tests fail as it is\n{(copy.parent / 'said').read_text()[-2000:]}", flush=True)
        module.tests = []
    return well


def _run(module: Module, copy: Path, changed: bytes, plugin: object) -> int:
    """The exit code of pytest, in a fork that has our libraries loaded and none of our own modules."""
    place = copy / module.path.relative_to(SOURCES)
    place.write_bytes(changed)
    child = os.fork()
    if child == 0:
        code = 1
        with contextlib.suppress(BaseException):
            code = _tested(module, copy, plugin)
        os._exit(code)
    try:
        _, status = os.waitpid(child, 0)
    except BaseException:
        os.kill(child, signal.SIGKILL)  # it has a session of its own, and would go on alone
        raise
    place.write_bytes(module.path.read_bytes())
    return os.waitstatus_to_exitcode(status)


def _tested(module: Module, copy: Path, plugin: object) -> int:
    import pytest

    os.setsid()
    if module.cpu_s:
        seconds = int(module.cpu_s * CPU_TIMES) + CPU_SPARE_S
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    said = os.open(copy.parent / "said", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(said, 1)
    os.dup2(said, 2)
    os.chdir(ROOT)
    os.environ["PYTHONPATH"] = str(copy)
    sys.path.insert(0, str(copy))
    patience = [f"--timeout={WALL_SPARE_S + WALL_TIMES * module.wall_s:.0f}"] if module.wall_s else []
    code = int(pytest.main([*ARGUMENTS, *patience, *module.tests], plugins=[plugin]))
    return 0 if code == NO_TESTS else code


def _load() -> None:
    for name in LOADED:
        with contextlib.suppress(ImportError):
            __import__(name)
    assert not any(name == "postroom" or name.startswith("postroom.") for name in sys.modules)


def _modules(most_files: int = MOST_FILES) -> list[Module]:
    paths = [path for part in ("core", "store") for path in sorted((SOURCES / "postroom" / part).glob("*.py"))]
    imported = {test: _imports(test) for suite in SUITES for test in sorted((HERE / suite).glob("test_*.py"))}
    users = {_dotted(path): _imports(path) for path in (SOURCES / "postroom").glob("*/*.py")}
    modules: list[Module] = []
    for path in paths:
        # Whoever imports it directly is enough; where nobody does, whoever imports what it is made for.
        names = {_dotted(path)}
        if not any(names & found for found in imported.values()):
            names = {user for user, found in users.items() if names & found}
        tests = [str(test.relative_to(ROOT)) for test, found in imported.items() if names & found]
        # The one of its own name first, as it fails soonest; then whoever speaks of it most.
        own, word = f"test_{path.stem}.py", re.compile(rf"\b{path.stem}\b")
        tests.sort(key=lambda test: (not test.endswith(own), -len(word.findall((ROOT / test).read_text())), test))
        modules.append(Module(path, tests[:most_files]))
    return modules


def _dotted(path: Path) -> str:
    return ".".join(path.relative_to(SOURCES).with_suffix("").parts)


def _imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            found |= {node.module, *(f"{node.module}.{each.name}" for each in node.names)}
    return found


def _report(modules: Iterable[Module]) -> int:
    tried = [module for module in modules if module.noticed or module.survivors]
    print("\nmodule                          noticed  survived")
    for module in tried:
        print(f"{module.name:<32}{module.noticed:7d}{len(module.survivors):10d}")
        for each in module.survivors:
            print(f"    {each}")
    noticed, survived = sum(m.noticed for m in tried), sum(len(m.survivors) for m in tried)
    print(f"{'all':<32}{noticed:7d}{survived:10d}")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Which small wrong changes no test notices.")
    parser.add_argument("only", nargs="*", help="modules, or how their names begin: core/retry, store/")
    parser.add_argument("--sample", type=int, default=SAMPLE)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--each", type=int, default=0, metavar="N", help="so many changes of every module")
    parser.add_argument("--files", type=int, default=MOST_FILES, help="of tests, at most, for each module")
    parser.add_argument("--all", action="store_true", help="every change; takes days for all modules")
    return parser.parse_args()


if __name__ == "__main__":
    began = time.monotonic()
    ended = main()
    print(f"took {time.monotonic() - began:.0f} s")
    sys.exit(ended)
