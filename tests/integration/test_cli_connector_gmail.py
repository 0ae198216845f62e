"""`postroom connector gmail`: what is refused before anything is connected."""

import os
from pathlib import Path

import pytest

from postroom.compose.application import PostroomApplication
from postroom.interfaces.cli import run

ADDRESS = "mara@lindqvist.example"


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in [name for name in os.environ if name.startswith("POSTROOM_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("POSTROOM_DATA_DIR", str(tmp_path))
    monkeypatch.setattr("postroom.telemetry.logs.configure_logging", lambda *_args, **_more: None)  # type: ignore[reportUnknownLambdaType]
    return monkeypatch


def postroom(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        run(PostroomApplication(), arguments)
    return int(ended.value.code or 0)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--email", "nobody"], "--email"),
        (["--email", "../../etc/x@y.example"], "--email"),
        (["--email", f"{'m' * 300}@x.example"], "--email"),
        (["--email", "a\x07b@x.example"], "--email"),
        (["--email", ADDRESS, "--also", "x"], "--also"),
        (["--email", ADDRESS, "--switchboard", "127.0.0.1:8025"], "connector.switchboard_url"),
        ([], "--email"),
    ],
)
def test_a_wrong_option_is_reported_in_one_line(
    environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], options: list[str], complaint: str
):
    environment.setenv("POSTROOM_CONNECTOR_TOKEN", "a token")
    assert postroom("connector", "gmail", *options) == 2
    told = capsys.readouterr().err
    assert complaint in told
    assert "Traceback" not in told


def test_without_a_token_it_says_how_to_get_one(environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    assert postroom("connector", "gmail", "--email", ADDRESS.upper()) == 2
    told = capsys.readouterr().err
    assert f"postroom token create --role connector --identity gmail:user:{ADDRESS}" in told
