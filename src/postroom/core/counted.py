"""Numbers of things, as people read them."""


def counted(number: int, noun: str, plural: str = "s") -> str:
    """Return the number with its noun: `1 action`, `1,200 actions`. `plural` is the ending of the plural."""
    return f"{number:,} {noun}{'' if number == 1 else plural}"
