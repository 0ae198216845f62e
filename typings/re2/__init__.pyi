"""The part of google-re2 that Postroom uses, typed."""

from collections.abc import Callable

class error(Exception): ...  # noqa: N801

class _Match:
    def __getitem__(self, group: int) -> str | None: ...

class Options:
    case_sensitive: bool
    log_errors: bool
    literal: bool
    max_mem: int

class Regexp:  # its name at run time is private: only for annotations
    programsize: int
    def search(self, text: str | bytes) -> object | None: ...
    def sub(self, repl: str | Callable[[_Match], str], text: str) -> str: ...

class Set:
    @staticmethod
    def SearchSet(options: Options) -> Set: ...  # noqa: N802
    def Add(self, pattern: str) -> int: ...  # noqa: N802
    def Compile(self) -> None: ...  # noqa: N802
    def Match(self, text: str | bytes) -> list[int]: ...  # noqa: N802

def compile(pattern: str, options: Options | None = None) -> Regexp: ...
def escape(pattern: str) -> str: ...
