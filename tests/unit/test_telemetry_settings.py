"""Telemetry settings are checked at the start, and their secrets are never shown."""

from pathlib import Path

import pytest

from postroom.core.errors import SettingsError
from postroom.settings.reading import Settings, load_settings, secrets_of, shown
from postroom.settings.sections import read_headers

SECRET = "Kanarienvogel17"


def load(tmp_path: Path, **environ: str) -> Settings:
    return load_settings(
        {"data_dir": tmp_path}, environ={f"POSTROOM_TELEMETRY_{name}": text for name, text in environ.items()}
    )


def test_without_anything_said_metrics_are_served_and_nothing_is_sent(tmp_path: Path):
    telemetry = load(tmp_path).telemetry
    assert (telemetry.metrics, telemetry.otlp_endpoint, telemetry.otlp_headers) == (True, None, None)
    assert (telemetry.traces_sample_ratio, telemetry.service_name) == (1.0, "postroom")


@pytest.mark.parametrize("given", ["http://collector:4318", "https://otlp.example/base/", "http://[::1]:4318"])
def test_an_endpoint_is_an_address(tmp_path: Path, given: str):
    assert load(tmp_path, OTLP_ENDPOINT=given).telemetry.otlp_endpoint == given.rstrip("/")


@pytest.mark.parametrize(
    "given",
    ["collector:4318", "grpc://collector", "http://", f"http://ada:{SECRET}@collector", "http://a b", "http://a?b"],
)
def test_an_endpoint_that_is_none_or_holds_a_password_is_refused_without_showing_it(tmp_path: Path, given: str):
    with pytest.raises(SettingsError, match=r"telemetry\.otlp_endpoint: .* without user or password") as refused:
        load(tmp_path, OTLP_ENDPOINT=given)
    assert SECRET not in str(refused.value)


def test_headers_are_pairs_whose_values_may_be_percent_encoded():
    text = "authorization=Basic%20YTpi==, x-scope = a%2Cb ,,x-empty="
    assert read_headers(text) == {"authorization": "Basic YTpi==", "x-scope": "a,b", "x-empty": ""}


@pytest.mark.parametrize(
    "given", [SECRET, f"a b={SECRET}", f"={SECRET}", f"a={SECRET}\r\nx: y", f"a={SECRET}%0d%0a", f"a={SECRET}ü"]
)
def test_headers_that_are_none_are_refused_without_showing_them(tmp_path: Path, given: str):
    with pytest.raises(SettingsError, match=r"telemetry\.otlp_headers: \*+ .* use name=value,name=value") as refused:
        load(tmp_path, OTLP_HEADERS=given)
    assert SECRET not in str(refused.value)


def test_headers_are_a_secret(tmp_path: Path):
    settings = load(tmp_path, OTLP_HEADERS=f"authorization={SECRET}")
    assert SECRET not in str(shown(settings)) + repr(settings)
    assert f"authorization={SECRET}" in secrets_of(settings)


@pytest.mark.parametrize("given", ["-0.1", "1.1", "nan", "half"])
def test_a_share_is_from_0_to_1(tmp_path: Path, given: str):
    with pytest.raises(SettingsError, match="use a number from 0 to 1"):
        load(tmp_path, TRACES_SAMPLE_RATIO=given)
