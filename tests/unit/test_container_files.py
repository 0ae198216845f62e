"""Containerfile, compose.yaml and their page: what they name exists, and nothing in them has a right too many."""

import json
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from postroom.interfaces.cli.root import COMMANDS
from postroom.settings.reading import Settings, known_settings, load_settings

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/how-to/container.md"
COMPOSE: dict[str, Any] = YAML(typ="safe").load((ROOT / "compose.yaml").read_text("utf-8"))
OURS = {name: service for name, service in COMPOSE["services"].items() if service["image"] == "postroom"}
USER = "10001"

# The fields of the Compose Specification and the options of Docker that we rely on. Podman knows them too.
SERVICE_FIELDS = (
    "build cap_add cap_drop command container_name depends_on environment healthcheck image ports profiles read_only "
    "restart secrets security_opt stop_grace_period tmpfs volumes"
)
OPTIONS = {
    "build": "--build-arg --file --tag",
    "compose exec": "",
    "compose up": "--build --detach",
    "cp": "",
    "exec": "-it",
    "logs": "",
    "rm": "--force",
    "rmi": "",
    "run": "--cap-drop --detach --entrypoint --env --interactive --name --publish --read-only --restart --rm "
    "--security-opt --stop-timeout --tmpfs --volume",
    "volume rm": "",
}


def instructions() -> list[tuple[str, str]]:
    """The instructions of the Containerfile, each on one line."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Containerfile").read_text("utf-8"), flags=re.M).replace("\\\n", "")
    return [(name, rest.strip()) for name, _, rest in (line.partition(" ") for line in text.splitlines() if line)]


def last(name: str) -> str:
    return [rest for each, rest in instructions() if each == name][-1]


def variables() -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in shlex.split(last("ENV")))


def is_short(image: str) -> bool:
    """Whether it names no host of a registry: the user's own tool decides where it comes from."""
    return not re.match(r"[^/]*[.:][^/]*/|localhost/", image)


def test_the_base_is_the_users_choice_and_names_no_registry() -> None:
    name, _, base = next(rest for each, rest in instructions() if each == "ARG").partition("=")
    assert name == "BASE"
    assert is_short(base)
    assert {rest.split(" ")[0] for each, rest in instructions() if each == "FROM"} == {"${BASE}"}
    assert all(is_short(service["image"]) for service in COMPOSE["services"].values())


def test_all_that_is_copied_exists_and_all_that_is_installed_has_a_hash() -> None:
    copied = [rest.split()[:-1] for each, rest in instructions() if each == "COPY" and "--from" not in rest]
    assert [name for names in copied for name in names if not (ROOT / name).exists()] == []
    first, *kept = [line for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines() if line[0] in "*!"]
    assert first == "*", "folders with mail and secrets are not sent to the build"
    assert [name for name in kept if name[0] == "!" and not list(ROOT.glob(name[1:]))] == []
    built = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"]["targets"]
    read = {*(each.lstrip("/") for each in built["sdist"]["include"]), *built["wheel"]["force-include"]}
    assert {each.split("/")[0] for each in read} <= {name[1:] for name in kept}, "the wheel cannot be built from it"
    for line in re.findall(r"(?:pip install|uv build) [^&]*", " ".join(rest for _, rest in instructions())):
        assert "--require-hashes" in line or "--no-deps /wheel/" in line, line


def test_the_image_runs_without_rights_on_a_volume_of_its_own() -> None:
    assert last("USER") == f"{USER}:{USER}"
    assert f"--uid {USER}" in " ".join(rest for _, rest in instructions())
    assert last("VOLUME") == variables()["POSTROOM_DATA_DIR"]
    assert last("STOPSIGNAL") == "SIGTERM"
    assert [last("EXPOSE")] == [str(Settings.model_validate({}).web.port)]
    assert json.loads(last("ENTRYPOINT")) == ["postroom"]
    assert {*json.loads(last("CMD")), json.loads(last("HEALTHCHECK").partition("CMD ")[2])[1]} <= COMMANDS.keys()


def test_the_settings_of_the_image_serve_localhost_alone_until_there_is_tls(tmp_path: Path) -> None:
    given = {name: value for name, value in variables().items() if name != "PATH"}
    web = load_settings(environ=given, cwd=tmp_path).web
    assert (web.host, web.is_localhost_only, web.sign_in, web.may_be_exposed) == ("0.0.0.0", True, True, True)
    proxy = {"POSTROOM_WEB_TRUSTED_PROXIES": "172.18.0.2", "POSTROOM_WEB_ALLOWED_HOSTS": "mail.example.com"}
    assert not load_settings(environ=given | proxy, cwd=tmp_path).web.is_localhost_only


@pytest.mark.parametrize("name", COMPOSE["services"])
def test_a_service_has_fields_that_exist_and_no_right_too_many(name: str) -> None:
    service = COMPOSE["services"][name]
    assert service.keys() <= set(SERVICE_FIELDS.split())
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    named = {"volumes": [each.partition(":")[0] for each in service["volumes"]], "secrets": service.get("secrets", [])}
    assert all(set(each) <= COMPOSE[kind].keys() for kind, each in named.items() if each)
    assert set(service.get("depends_on", ())) <= COMPOSE["services"].keys()


def test_what_compose_starts_and_sets_is_postrooms() -> None:
    settings = {setting.env for setting in known_settings()}
    for service in OURS.values():
        assert set(service.get("command", [])) <= COMMANDS.keys()
        assert service["environment"].keys() <= settings
        assert service["volumes"] == [f"postroom:{variables()['POSTROOM_DATA_DIR']}"]
        assert service["stop_grace_period"] == "1m"
    assert Settings.model_validate({}).jobs.drain_s < 60, "stopping may take longer than jobs may"


def test_pages_are_published_on_loopback_and_the_rest_is_switched_on_by_name() -> None:
    assert OURS["postroom"]["ports"] == ["127.0.0.1:8025:8025"]
    assert [name for name, service in COMPOSE["services"].items() if "profiles" not in service] == ["postroom"]
    profiles = {each for service in COMPOSE["services"].values() for each in service.get("profiles", ())}
    (switched_on,) = re.findall(r"^COMPOSE_PROFILES=(.*)$", PAGE.read_text("utf-8"), re.M)
    assert set(switched_on.split(",")) == profiles


def test_the_page_gives_docker_options_that_it_has_and_publishes_on_loopback_only() -> None:
    text = PAGE.read_text("utf-8").replace("\\\n", " ")
    found = re.findall(r"\bdocker ((?:(?:compose|volume) )?\w+)\b([^`\n]*)", text)
    assert {name for name, _ in found} == OPTIONS.keys()
    for name, rest in found:
        before, _, command = rest.partition(" postroom ")
        assert set(re.findall(r"(?<!\S)--?\w[\w-]*", before)) <= set(OPTIONS[name].split()), rest
        if name in ("exec", "compose exec"):
            assert command.startswith("postroom "), rest
    assert set(re.findall(r"--publish (\S+)", text)) == {"127.0.0.1:8025:8025"}
