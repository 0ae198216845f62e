"""`postroom ready`: whether the server on this machine can work now, for health checks."""

import typer

from postroom.interfaces.cli.session import Session, one_command

app = one_command()


@app.command()
def ready(session: Session) -> None:
    """Ask the Postroom that runs on this machine whether it is ready. Exits with 1 if it is not, or does not run."""
    from postroom.operations.installation.ready import ask_ready

    is_ready = ask_ready(session.settings.web)
    session.show_line({"ready": is_ready}, "ready" if is_ready else "not ready; `postroom doctor` says why")
    if not is_ready:
        raise typer.Exit(1)
