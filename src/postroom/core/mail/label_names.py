"""Label names as people see them: two that look alike have the same skeleton.

Names are normalised (NFKD) and casefolded, and lose accents, invisible characters and word separators. Letters of other
scripts, and digits, that look like Latin letters are replaced by these.
"""

import unicodedata
from collections.abc import Iterable, Mapping

# Marks, controls and invisible formatting: a name looks the same, or almost the same, without them.
_UNSEEN = frozenset({"Mn", "Me", "Cc", "Cf", "Cs", "Co", "Cn"})
_SEPARATING = frozenset({"Zs", "Zl", "Zp", "Pd", "Pc"})
# Lookalikes by the lower-case letter they resemble. Some digits, and the l, pass for an i or an o.
_LOOKS_LIKE: Mapping[str, str] = {
    "a": "\u0430\u03b1\u0251",
    "b": "\u0432\u044c\u03b2",
    "c": "\u0441\u03f2\u0454\u1d04",
    "d": "\u0501\u217e",
    "e": "\u0435\u0451\u03b5\u212e",
    "g": "\u0261\u0581",
    "h": "\u04bb\u043d\u03b7\u0570",
    "i": "\u0456\u0457\u03b9\u04cf\u0131\u01c01l|!\u05d5\u05df",
    "j": "\u0458\u03f3",
    "k": "\u043a\u03ba",
    "m": "\u043c\u03bc",
    "n": "\u0578\u057c\u03bd",
    "o": "\u043e\u03bf\u03c30\u0585\u0555\u05e1",
    "p": "\u0440\u03c1",
    "q": "\u051b",
    "r": "\u0433\u044f\u1d26",
    "s": "\u0455\u0575$5",
    "t": "\u0442\u03c4",
    "u": "\u057d\u03c5\u1d1c",
    "v": "\u0475\u1d20",
    "w": "\u0461\u051d\u03c9",
    "x": "\u0445\u03c7",
    "y": "\u0443\u03b3\u04af",
    "z": "\u1d22\u03b6",
}
_REPLACED = {ord(odd): plain for plain, odds in _LOOKS_LIKE.items() for odd in odds}


def skeleton(name: str) -> str:
    """The name without everything that a reader may overlook."""
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", name).casefold())
    kept = (each for each in folded if unicodedata.category(each) not in _UNSEEN | _SEPARATING and each not in ".,'`")
    return "".join(kept).translate(_REPLACED)


def looks_like(name: str, others: Iterable[str]) -> str | None:
    """The first of the others that could be mistaken for this name; None if there is none."""
    wanted = skeleton(name)
    return next((each for each in others if skeleton(each) == wanted), None)
