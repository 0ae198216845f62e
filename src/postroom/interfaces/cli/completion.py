"""`postroom completion`: the script by which the user's shell completes commands."""

from typing import Annotated, Literal

from postroom.interfaces.cli.root import COMPLETE
from postroom.interfaces.cli.session import Session, one_command
from postroom.operations.operation import Argument

app = one_command()


@app.command()
def completion(
    session: Session,
    shell: Annotated[Literal["bash", "zsh", "fish"], Argument("Your shell: bash, zsh or fish.", typed_as="SHELL")],
) -> None:
    """Complete commands, options and their values when you press Tab.

    Bash: add `eval "$(postroom completion bash)"` to ~/.bashrc. Zsh: add `eval "$(postroom completion zsh)"` to
    ~/.zshrc, after compinit. Fish: run `postroom completion fish > ~/.config/fish/completions/postroom.fish` once.
    """
    from typer._completion_shared import get_completion_script

    script = get_completion_script(prog_name="postroom", complete_var=COMPLETE, shell=shell)
    session.show_line({"shell": shell, "script": script}, script)
