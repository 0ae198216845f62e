"""The sources of one commit: its files by package, and its Python as syntax trees."""

import ast
import subprocess
import tarfile
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path

from support.house.names import DOCUMENTS, PRODUCT, SOURCES

Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Module:
    """A Python file of the product; `path` is relative to the product's package."""

    path: Path
    text: str

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(ast.parse(self.text)))

    @property
    def docstrings(self) -> Iterator[str]:
        for node in self.nodes:
            if isinstance(node, Documented) and (said := ast.get_docstring(node)) is not None:
                yield said


@dataclass(frozen=True)
class Tree:
    """A folder that contains one commit's files."""

    root: Path

    @property
    def sources(self) -> Path:
        return self.root / SOURCES

    @property
    def product(self) -> Path:
        return self.sources / PRODUCT

    @cached_property
    def modules(self) -> list[Module]:
        paths = sorted(self.product.rglob("*.py"))
        return [Module(path.relative_to(self.product), path.read_text("utf-8")) for path in paths]

    @cached_property
    def documents(self) -> dict[Path, str]:
        paths = sorted(path for pattern in DOCUMENTS for path in self.root.glob(pattern))
        return {path.relative_to(self.root): path.read_text("utf-8") for path in paths}


@contextmanager
def tree_of(root: Path, commit: str) -> Generator[Tree]:
    """The files of a commit, in a folder that is removed afterwards."""
    packed = git(root, "archive", "--format=tar", commit)
    with tempfile.TemporaryDirectory(prefix="postroom-house-") as folder:
        with tarfile.open(fileobj=BytesIO(packed)) as archive:
            archive.extractall(folder, filter="data")
        yield Tree(Path(folder))


def git(root: Path, *arguments: str) -> bytes:
    """Raises SystemExit with git's own message."""
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr.decode())
    return done.stdout
