"""Services of systemd: the units that `postroom service` writes, and the start that they wait for."""

import json
import os
import re
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from postroom.core.errors import BadInput, PostroomError
from postroom.operations.installation import service
from postroom.operations.installation.service import ServiceManager
from postroom.operations.installation.service_units import MARK, ServicePart, ServicePlan
from postroom.settings.locations import CONFIG
from support.command import environment, postroom, running
from support.patience import PATIENCE_S
from support.programs import system_program
from support.warm_start import run_command

MACHINE = Path("etc/systemd/system")
MOST_EXPOSED = 2.0
PARTS = {"serve": "postroom.service", "worker": "postroom-worker.service", "submission": "postroom-submission.service"}


def analyzed(folder: Path, *arguments: str | Path) -> str:
    """What systemd thinks of a unit. Raises if it does not like it."""
    command = [system_program("systemd-analyze", "systemd"), *map(str, arguments)]
    of_user = {"XDG_RUNTIME_DIR": str(folder), "SYSTEMD_LOG_LEVEL": "warning"}
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | of_user, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize(("part", "unit"), PARTS.items())
def test_systemd_accepts_a_unit_and_finds_it_hardened(tmp_path: Path, part: str, unit: str) -> None:
    written = postroom(tmp_path, "service", "install", part, "--root", str(tmp_path), "--yes")
    assert written.returncode == 0, written.stderr
    file = tmp_path / MACHINE / unit
    assert file.read_text() in written.stdout, "what is written is shown"
    analyzed(tmp_path, "verify", file)
    security = analyzed(tmp_path, "security", "--offline=true", file)
    found = re.search(r"Overall exposure level for \S+ (\d\.\d)", security)
    assert found is not None
    assert float(found[1]) < MOST_EXPOSED


def test_a_service_of_ones_own_keeps_its_data_where_commands_look_for_it(tmp_path: Path) -> None:
    settings = tmp_path / "my settings.toml"
    settings.write_text("[jobs]\ndrain_s = 90\n")
    install = ("service", "install", "--user", "--root", str(tmp_path), "--yes")
    assert run_command(install, tmp_path, environment(tmp_path, None) | {CONFIG: str(settings)}).returncode == 0
    (file,) = tmp_path.rglob("postroom.service")
    assert file.parent.name == "user"
    assert f'"POSTROOM_DATA_DIR={tmp_path / "data"}"' in file.read_text()
    assert f'"POSTROOM_CONFIG={settings}"' in file.read_text()
    assert "TimeoutStopSec=120" in file.read_text(), "longer than running jobs may take"
    analyzed(tmp_path, "verify", "--user", file)


def test_a_service_is_not_set_up_without_the_settings_that_are_used_here(tmp_path: Path) -> None:
    """They are read because of the folder, in which the service does not run."""
    (tmp_path / "postroom.toml").write_text("")
    refused = postroom(tmp_path, "service", "install", "--user", "--root", str(tmp_path), "--yes")
    assert refused.returncode == 2
    assert f"the settings in {tmp_path / 'postroom.toml'} are read in this folder only" in refused.stderr
    assert not list(tmp_path.rglob("postroom.service"))


def test_installing_again_changes_nothing_and_a_file_of_others_is_kept(tmp_path: Path) -> None:
    install = ("service", "install", "--root", str(tmp_path))
    assert postroom(tmp_path, *install, "--yes").returncode == 0
    again = postroom(tmp_path, *install, "--dry-run")
    assert again.stdout.count("(unchanged)") == 2
    file = tmp_path / MACHINE / "postroom.service"
    file.write_text("[Service]\nExecStart=/usr/bin/mine\n")
    refused = postroom(tmp_path, *install, "--yes")
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "was not written by Postroom" in refused.stderr
    assert postroom(tmp_path, "service", "uninstall", "--root", str(tmp_path), "--yes").returncode == 0
    assert file.read_text().endswith("mine\n")
    assert not list(tmp_path.rglob("sysusers.d/*"))


def test_nothing_is_written_before_the_yes(tmp_path: Path) -> None:
    refused = postroom(tmp_path, "service", "install", "--root", str(tmp_path))
    assert refused.returncode == 2
    assert "--yes" in refused.stderr
    assert postroom(tmp_path, "service", "install", "--root", str(tmp_path), "--dry-run").returncode == 0
    assert not (tmp_path / "etc").exists()


def test_without_systemd_one_sentence_says_what_to_do(tmp_path: Path) -> None:
    alone = environment(tmp_path, None) | {"PATH": str(tmp_path)}
    for command in ("install", "uninstall", "status"):
        refused = run_command(("service", command, "--user"), tmp_path, alone)
        assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
        assert "systemd does not run on this machine" in refused.stderr


def test_the_services_that_were_set_up_are_listed(tmp_path: Path) -> None:
    below = ("--root", str(tmp_path))
    assert postroom(tmp_path, "service", "install", "worker", *below, "--yes").returncode == 0
    row = json.loads(postroom(tmp_path, "service", "status", *below, "--json").stdout)
    assert (row["unit"], row["state"]) == ("postroom-worker.service", "written")


def test_a_program_in_a_home_cannot_be_the_machines_service(tmp_path: Path) -> None:
    plan = ServicePlan("serve", Path("/home/ada/.local/bin/postroom"), tmp_path, 30, for_user=False)
    with pytest.raises(BadInput, match="in a home folder, which the machine's service cannot read"):
        service.planned_files(ServiceManager(for_user=False, root=None, environ={}), plan)


@pytest.mark.parametrize("part", ["serve", "worker"])
def test_a_service_is_started_when_its_files_are_written_and_stopped_before_they_go(
    tmp_path: Path, part: ServicePart, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, unit = tmp_path / "calls", PARTS[part]
    (tmp_path / "systemctl").write_text(f'#!/bin/sh\necho "$@" >> {log}\ntest "$2" != show || echo active\n')
    (tmp_path / "systemctl").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    manager = ServiceManager(for_user=True, root=None, environ={"HOME": str(tmp_path)})
    plan = ServicePlan(part, Path("/opt/postroom/bin/postroom"), tmp_path, 30, for_user=True)
    service.install(manager, plan, service.planned_files(manager, plan))
    (file,) = service.installed(manager)
    assert file == tmp_path / ".config/systemd/user" / unit
    assert file.read_text().startswith(MARK)
    assert service.state_of(manager, file) == "active"
    service.uninstall(manager, [file])
    assert not file.exists()
    started = ["daemon-reload", f"enable {unit}", f"restart {unit}", f"show --property=ActiveState --value {unit}"]
    assert log.read_text().splitlines() == [
        f"--user {each}" for each in [*started, f"disable --now {unit}", "daemon-reload"]
    ]


def test_a_service_manager_that_refuses_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "systemctl").write_text("#!/bin/sh\necho 'Access denied' >&2\nexit 4\n")
    (tmp_path / "systemctl").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(PostroomError, match=r"`systemctl daemon-reload` failed: Access denied"):
        ServiceManager(for_user=False, root=None, environ={}).call("daemon-reload")


@pytest.mark.parametrize("abstract", [False, True])
def test_the_service_manager_hears_when_the_pages_answer_and_no_link_is_printed(tmp_path: Path, abstract: bool) -> None:
    name = f"postroom-{os.getpid()}-{tmp_path.name}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(f"\0{name}" if abstract else str(tmp_path / "notify"))
        listening.settimeout(PATIENCE_S)
        place = f"@{name}" if abstract else str(tmp_path / "notify")
        more = {"NOTIFY_SOCKET": place, "POSTROOM_WEB_SIGN_IN": "true"}
        with running(tmp_path, "serve", "--port", "0", more=more) as process:
            assert listening.recv(100) == b"READY=1"
            said = [process.stdout.readline(), process.stdout.readline()]
            process.send_signal(signal.SIGTERM)
            more_said, log = process.communicate(timeout=PATIENCE_S)
    assert "postroom person add NAME --role admin" in said[1]
    assert "sign-in/once#" not in "".join([*said, more_said, log])
