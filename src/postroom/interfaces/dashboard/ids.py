"""The ids in addresses and forms."""

from uuid import UUID


def read_id(text: str, otherwise: Exception) -> UUID:
    """Read an id. Raises `otherwise` if the text is none."""
    try:
        return UUID(text)
    except ValueError:
        raise otherwise from None
