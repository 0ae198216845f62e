"""The first ten minutes, run as they are written, in an empty home."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from support.closed_home import open_home
from support.patience import PATIENCE_S

PAGE = Path(__file__).parents[2] / "docs" / "tutorial" / "first-ten-minutes.md"
BLOCK = re.compile(r"^```(\w+)(?: ([^\n]*))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def _home(folder: Path) -> dict[str, str]:
    """The environment of somebody who has just installed Postroom; the demo takes any free port."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return open_home(folder) | {"PATH": path, "POSTROOM_WEB_PORT": "0"}


def _run(script: str, folder: Path) -> str:
    ended = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env=_home(folder),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert ended.returncode == 0, (script, ended.stdout, ended.stderr)
    return ended.stdout


def test_the_first_ten_minutes_go_as_written(tmp_path: Path) -> None:
    blocks = [(language, note, body) for language, note, body in BLOCK.findall(PAGE.read_text("utf-8"))]
    said = "".join(_run(body, tmp_path) for language, note, body in blocks if (language, note) == ("sh", ""))
    for language, _, body in blocks:
        if language == "text":
            assert body in said, "what the page shows is what the commands print"
    assert "apply_label Receipts, archive, mark_read" in said
    assert "<html" in (tmp_path / "preview.html").read_text("utf-8")
    (demo,) = [body for _, note, body in blocks if note == "demo"]
    (beside,) = [body for _, note, body in blocks if note == "beside the demo"]
    with subprocess.Popen(
        ["bash", "-c", f"exec {demo}"],
        cwd=tmp_path,
        env=_home(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "connector.looked_back" in line:
                break
        assert "archive" in _run(beside, tmp_path)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)
