"""The entry: what the command `postroom` runs.

It is loaded for every `postroom --help`, so everything heavy is imported inside the functions that need it.
"""


def main() -> None:
    from postroom.cli import run
    from postroom.compose.application import PostroomApplication
    from postroom.system.private_files import keep_private

    keep_private()
    run(PostroomApplication())
