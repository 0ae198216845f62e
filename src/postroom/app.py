"""The entry point: what the command `postroom` runs.

Every command loads it, even `postroom --help`, so heavy imports are inside the functions that need them. Python before
3.11 can load it too, and is refused with a sentence.
"""

import sys


def main() -> None:
    """Run the command `postroom`."""
    if sys.version_info < (3, 11):  # noqa: UP036
        running = ".".join(str(part) for part in sys.version_info[:3])
        sys.exit(
            f"postroom: this is Python {running}, and Postroom needs 3.11 or newer. Install it again with a newer "
            "Python, for example with `uv tool install --python 3.13`."
        )
    from postroom.compose.application import PostroomApplication
    from postroom.interfaces.cli import run
    from postroom.system.private_files import keep_private

    keep_private()
    run(PostroomApplication())
