"""Plain tables: the first column to the left, numbers to the right."""

from collections.abc import Sequence


def print_table(title: str, heading: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    cells = [list(heading), *([_cell(each) for each in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    print(f"\n{title}")
    for row in cells:
        first, *others = (f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True))
        print("  ".join(["", f"{first.strip():<{widths[0]}}", *others]))


def _cell(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
