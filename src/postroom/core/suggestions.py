"""Hints for names that were misspelt."""

from collections.abc import Iterable


def did_you_mean(given: str, known: Iterable[str], otherwise: str, *, quoted: bool = True) -> str:
    """A hint at the known name closest to the given one; `otherwise` if none is close."""
    near = nearest(given, known)
    if near is None:
        return otherwise
    return f"did you mean {near!r}?" if quoted else f"did you mean {near}?"


def nearest(given: str, known: Iterable[str]) -> str | None:
    """The known name that begins so, if it is one, or is closest; None if none is close."""
    import difflib  # rarely needed, and every command would pay for it

    names = list(known)
    begun = [each for each in names if given and each.startswith(given)]
    near = begun if len(begun) == 1 else difflib.get_close_matches(given, names, n=1)
    return near[0] if near else None
