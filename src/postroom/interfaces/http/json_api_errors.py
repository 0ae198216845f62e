"""Errors of the JSON API in their one form, also where a request does not get as far as an operation."""

from collections.abc import Mapping

from postroom.core.harmless import harmless
from postroom.interfaces.http.api.operation import PREFIX


def error_form(code: str, message: str, field: str, remedy: str) -> Mapping[str, Mapping[str, str]]:
    """The form of every error."""
    shown = {"code": code, "message": message, "field": field, "remedy": remedy}
    return {"error": {name: harmless(text) for name, text in shown.items()}}


def is_of_api(path: str) -> bool:
    """Whether a path is below that of the API, whatever its version."""
    return path.startswith(f"{PREFIX.rpartition('/')[0]}/")
