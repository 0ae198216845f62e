"""`postroom settings`: the settings in effect, and where each was set."""

from pathlib import Path
from typing import Any

from postroom.interfaces.cli.session import Session, one_command

app = one_command()


@app.command()
def settings(session: Session) -> None:
    """Show the settings in effect and where each came from. Secrets are hidden."""
    session.show_list(_rows(session.data_dir), ("setting", "value", "from"))


def _rows(data_dir: Path | None) -> list[dict[str, Any]]:
    from postroom.settings.reading import known_settings, shown, trace_settings

    effective, origins = trace_settings({"data_dir": data_dir})
    values = shown(effective)
    return [
        {
            "setting": setting.key,
            "value": values[setting.key],
            "from": origins[setting.key],
            "environment": setting.env,
            "description": setting.description,
        }
        for setting in known_settings()
    ]
