"""The part of google-re2 that Postroom uses, typed."""

class error(Exception): ...  # noqa: N801

class Options:
    case_sensitive: bool
    log_errors: bool

class _Regexp:
    def search(self, text: str) -> object | None: ...

def compile(pattern: str, options: Options | None = None) -> _Regexp: ...
