"""`postroom key`: list and replace the keys that encrypt the accounts' secrets."""

from typing import TYPE_CHECKING

import typer

from postroom.interfaces.cli.output import show_json
from postroom.interfaces.cli.session import Session
from postroom.interfaces.cli.table import group_of

if TYPE_CHECKING:
    from postroom.operations.accounts.keys import Rotation


def _show_rotation(session: Session, rotation: "Rotation") -> None:
    """Show it. Exits with 1 if there is an account whose secret no key opens."""
    done, dropped = rotation.resealing, rotation.dropped
    if session.as_json:
        show_json({"key": done.key_id, "resealed": done.resealed, "unopened": done.unopened, "dropped": dropped})
    else:
        typer.echo(f"{done.key_id}  encrypts {done.resealed} more secrets")
        for id in dropped:
            typer.echo(f"{id}  dropped")
    if rotation.in_settings and dropped:
        typer.echo("Any of them that are in the setting secret_key can be removed from it.", err=True)
    for id in done.unopened:
        typer.echo(f"the secret of the account {id} cannot be decrypted: connect it again", err=True)
    if done.unopened:
        raise typer.Exit(1)


SUMMARY = "List and replace the keys that encrypt the accounts' secrets."
app = group_of(SUMMARY, "key", "accounts.keys", rotate=_show_rotation)
