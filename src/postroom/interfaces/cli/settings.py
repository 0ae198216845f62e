"""`postroom settings`: the settings in effect, where each was set, and changing a few of them at once."""

from collections.abc import Iterator
from typing import Any

import typer

from postroom.core.errors import StoreError
from postroom.interfaces.cli.output import Row
from postroom.interfaces.cli.session import Commands, Session
from postroom.interfaces.cli.table import add_commands
from postroom.interfaces.cli.whole_help import WholeHelp


class ListedByItself(WholeHelp):
    """A group whose command `list` may be left out."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        is_named = bool(args) and (args[0][:1] != "-" or args[0] == "--help")
        return super().parse_args(ctx, args if is_named or ctx.resilient_parsing else ["list", *args])


app = Commands(cls=ListedByItself, rich_markup_mode=None, add_completion=False)
app.callback(help="Show the settings and where each came from; change a few of them while Postroom runs.")(lambda: None)


@app.command("list")
def list_settings(session: Session) -> None:
    """Show the settings in effect and where each came from. Secrets are hidden. `list` may be left out."""
    session.show_list(_rows(session), ("setting", "value", "from"))


add_commands(app, "settings", "installation.settings_view")


def _rows(session: Session) -> Iterator[Row]:
    from postroom.operations.installation.live_settings import LiveSettings
    from postroom.operations.installation.settings_view import settings_in_effect

    try:
        live = session.live_settings
    except StoreError as error:
        live = LiveSettings(session.settings)
        typer.echo(f"Settings that were changed on the pages are not shown: {error}", err=True)
    for each in settings_in_effect(live):
        yield {
            "setting": each.key,
            "value": each.value,
            "from": each.origin,
            "environment": each.environment,
            "description": each.description,
            "is_changeable": each.is_changeable,
        }
