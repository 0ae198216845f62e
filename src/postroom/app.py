"""The entry point: what the command `postroom` runs.

Every command loads it, even `postroom --help`, so heavy imports are inside the functions that need them.
"""


def main() -> None:
    """Run the command `postroom`."""
    from postroom.compose.application import PostroomApplication
    from postroom.interfaces.cli import run
    from postroom.system.private_files import keep_private

    keep_private()
    run(PostroomApplication())
