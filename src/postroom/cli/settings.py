"""`postroom settings`: the settings in effect, and where each was set."""

from pathlib import Path
from typing import Any

from postroom.cli.options import AsJson, DataDir, one_command
from postroom.cli.output import show_list

app = one_command()


@app.command()
def settings(data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Show the settings in effect and where each came from. Secrets are hidden."""
    show_list(_rows(data_dir), ("setting", "value", "from"), as_json=as_json)


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
