"""Times on the command line, read as everywhere."""

from postroom.core.moments import read_moment

__all__ = ["read_moment"]
