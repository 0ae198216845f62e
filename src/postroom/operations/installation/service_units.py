"""The units with which systemd runs Postroom: what they say, and what a process in them may do."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from postroom.settings.locations import CONFIG, SERVICE_DATA_DIR

ServicePart = Literal["serve", "worker", "submission"]
DESCRIPTIONS: dict[ServicePart, str] = {
    "serve": "Postroom: pages, mailboxes and jobs",
    "worker": "Postroom: jobs only",
    "submission": "Postroom: mail of senders over SMTP only",
}
MARK = "# Written by `postroom service install`, which writes it again: put changes into a drop-in (`systemctl edit`)."
USER = "postroom"
MORE_STOP_S = 30
"""Seconds to stop, after those in which running jobs may end."""

# What holds in every unit: these need no right but that to give up rights.
CONFINED = """\
UMask=0077
NoNewPrivileges=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
SystemCallErrorNumber=EPERM
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources
"""
# What only the system's own systemd can do for a process: what it sees of the machine.
SEPARATED = """\
AmbientCapabilities={capabilities}
CapabilityBoundingSet={capabilities}
DevicePolicy=closed
KeyringMode=private
PrivateDevices=yes
PrivateTmp=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHome=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
ProtectSystem=strict
RemoveIPC=yes
"""


@dataclass(frozen=True, slots=True)
class ServicePlan:
    """A service that is to be installed: for the machine, or for the user who asks."""

    part: ServicePart
    program: Path
    data_dir: Path
    drain_s: float
    for_user: bool
    settings_file: Path | None = None
    """Where the settings are, if not where a command finds them by itself."""


def unit_name(part: ServicePart) -> str:
    return "postroom.service" if part == "serve" else f"postroom-{part}.service"


def unit_text(plan: ServicePlan) -> str:
    """The unit that runs this part of Postroom."""
    return f"{MARK}\n{_unit(plan)}"


def account_text() -> str:
    """The account under which the machine's services run, for `systemd-sysusers`."""
    return f'{MARK}\nu {USER} - "Postroom" {SERVICE_DATA_DIR}\n'


def _unit(plan: ServicePlan) -> str:
    return "\n".join(
        [
            "[Unit]",
            f"Description={DESCRIPTIONS[plan.part]}",
            *([] if plan.for_user else ["Wants=network-online.target", "After=network-online.target"]),
            "",
            "[Service]",
            # A worker has no address to report.
            f"Type={'exec' if plan.part == 'worker' else 'notify'}",
            # An upgrade backs up a large database before the start is over, and would begin again if it was stopped.
            "TimeoutStartSec=infinity",
            # The colon: nothing in the line stands for a variable.
            f"ExecStart=:{_escaped(plan.program)} {plan.part}",
            f"Environment={_escaped(f'POSTROOM_DATA_DIR={plan.data_dir}')}",
            *([] if plan.settings_file is None else [f"Environment={_escaped(f'{CONFIG}={plan.settings_file}')}"]),
            *_place(plan),
            # Wrong settings (2) stay wrong, however often they are read.
            "Restart=on-failure",
            "RestartSec=5",
            "RestartPreventExitStatus=2",
            f"TimeoutStopSec={math.ceil(plan.drain_s) + MORE_STOP_S}",
            "",
            f"{CONFINED}{'' if plan.for_user else SEPARATED.format(capabilities=_capabilities(plan))}",
            "[Install]",
            f"WantedBy={'default' if plan.for_user else 'multi-user'}.target",
            "",
        ]
    )


def _place(plan: ServicePlan) -> list[str]:
    """The folder it works in: settings are read from `postroom.toml` in the data folder."""
    if plan.for_user:
        return ["WorkingDirectory=~"]
    place = [f"User={USER}", f"Group={USER}", f"WorkingDirectory={plan.data_dir}"]
    return [*place, f"StateDirectory={plan.data_dir.name}", "StateDirectoryMode=0700"]


def _capabilities(plan: ServicePlan) -> str:
    """Mail is submitted on ports 465 and 587, which need a right."""
    return "CAP_NET_BIND_SERVICE" if plan.part == "submission" else ""


def _escaped(word: Path | str) -> str:
    """A word as systemd reads it, where `%` begins a placeholder."""
    text = str(word).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("%", "%%")
    return f'"{text}"'
