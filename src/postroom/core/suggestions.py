"""Hints for names that were misspelt."""

from collections.abc import Iterable


def did_you_mean(given: str, known: Iterable[str], otherwise: str, *, quoted: bool = True) -> str:
    """A hint at the known name closest to the given one; `otherwise` if none is close."""
    import difflib  # rarely needed, and every command would pay for it

    names = list(known)
    begun = [each for each in names if given and each.startswith(given)]
    near = begun if len(begun) == 1 else difflib.get_close_matches(given, names, n=1)
    if not near:
        return otherwise
    return f"did you mean {near[0]!r}?" if quoted else f"did you mean {near[0]}?"
