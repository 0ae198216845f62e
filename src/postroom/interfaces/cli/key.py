"""`postroom key`: list and replace the keys that encrypt the accounts' secrets."""

from typing import Annotated

import typer

from postroom.interfaces.cli.output import show_json
from postroom.interfaces.cli.session import Session, command_group

app = command_group("List and replace the keys that encrypt the accounts' secrets.")

COLUMNS = ("id", "source", "seals", "created_at", "first_used_at", "secrets", "dropped_at")


@app.command("list")
def list_(session: Session) -> None:
    """List the keys by id: where each is stored, since when, and how many secrets it encrypts. Never prints a key."""
    from postroom.operations.accounts.keys import list_keys
    from postroom.operations.installation.vault import vault_of

    settings = session.settings
    session.show_list(session.call(list_keys, vault_of(settings)), COLUMNS)


@app.command()
def rotate(
    session: Session,
    drop_old: Annotated[
        bool, typer.Option("--drop-old", help="Then delete the older keys, which no longer encrypt anything.")
    ] = False,
) -> None:
    """Create a new key and encrypt every secret with it, while Postroom runs. Older keys stay until they are dropped.

    If the setting `secret_key` holds keys, none is created: everything is encrypted with the first of them.
    """
    from postroom.operations.accounts.keys import rotate_keys
    from postroom.operations.installation.vault import vault_of

    settings = session.settings
    configured = settings.secret_key is not None
    rotation = session.act(rotate_keys, vault_of(settings), configured=configured, drop_old=drop_old)
    done, dropped = rotation.resealing, rotation.dropped
    if session.as_json:
        show_json({"key": done.key_id, "resealed": done.resealed, "unopened": list(done.unopened), "dropped": dropped})
    else:
        typer.echo(f"{done.key_id}  encrypts {done.resealed} more secrets")
        for id in dropped:
            typer.echo(f"{id}  dropped")
    if configured and dropped:
        typer.echo("Any of them that are in the setting secret_key can be removed from it.", err=True)
    for id in done.unopened:
        typer.echo(f"the secret of the account {id} cannot be decrypted: connect it again", err=True)
    if done.unopened:
        raise typer.Exit(1)
