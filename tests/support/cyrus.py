"""A real Cyrus on loopback, with a folder of its own and one service for each profile.

Its package excludes Dovecot's, so it is unpacked beside the system. Whoever signs in is checked by a small daemon of
ours, which speaks the protocol of saslauthd.
"""

import os
import socketserver
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from support.imap_server import (
    PASSWORD,
    PROFILES,
    ImapServer,
    address_of,
    free_ports,
    ids_of,
    server_folder,
    unprivileged,
    write_certificate,
)
from support.programs import unpacked_packages

PACKAGES = ("cyrus-imapd", "cyrus-common", "libical3", "libpcre3", "libxapian30")
SPECIAL = {"drafts": "Drafts", "sent": "Sent", "trash": "Trash", "junk": "Spam", "archive": "Archive"}


@contextmanager
def running_cyrus() -> Generator[ImapServer]:
    """A server for the block."""
    root = unpacked_packages("cyrus", PACKAGES)
    programs = root / "usr/lib/cyrus/bin"
    libraries = ":".join(str(each.parent) for each in root.glob("**/libcyrus.so.0")) + ":" + _library_folders(root)
    with server_folder("cyrus") as folder:
        user = unprivileged()
        for each in ("conf", "spool", "run"):
            (folder / each).mkdir()
            os.chown(folder / each, *ids_of(user))
        port, tls_port = free_ports(2)
        server = ImapServer("cyrus", port, tls_port, folder)
        write_certificate(folder, user)
        for profile in PROFILES:
            (folder / f"{profile}.conf").write_text(_config(folder, user, profile))
        (folder / "cyrus.conf").write_text(_services(server, programs))
        with _password_daemon(folder / "run/mux"):
            command = [programs / "master", "-C", folder / "all.conf", "-M", folder / "cyrus.conf"]
            command += ["-p", folder / "pid", "-D"]
            with (folder / "log").open("wb") as log:
                server.start(command, log, os.environ | {"LD_LIBRARY_PATH": libraries})
            try:
                server.wait_until_ready(folder / "log")
                yield server
            finally:
                server.stop()


def _library_folders(root: Path) -> str:
    return ":".join(sorted({str(each.parent) for each in root.glob("**/*.so.*")}))


def _config(folder: Path, user: str, profile: str) -> str:
    special = "\n".join(f"xlist-{use}: {name}" for use, name in SPECIAL.items())
    # Cyrus refuses a setting without a value.
    suppressed = f"suppress_capabilities: {' '.join(sorted(PROFILES[profile]))}" if PROFILES[profile] else ""
    return f"""
configdirectory: {folder}/conf
partition-default: {folder}/spool
defaultpartition: default
cyrus_user: {user}
cyrus_group: {user}
sasl_pwcheck_method: saslauthd
sasl_saslauthd_path: {folder}/run/mux
sasl_mech_list: PLAIN LOGIN
allowplaintext: yes
tls_server_cert: {folder}/certificate.pem
tls_server_key: {folder}/certificate.pem
unixhierarchysep: yes
altnamespace: yes
autocreate_quota: 0
autocreate_inbox_folders: {"|".join(SPECIAL.values())}
{special}
specialusealways: 1
{suppressed}
mboxname_lockpath: {folder}/conf/lock
proc_path: {folder}/conf/proc
imapidlepoll: 1
notifysocket: {folder}/run/notify
lmtpsocket: {folder}/run/lmtp
expunge_mode: immediate
delete_mode: immediate
skiplist_unsafe: 1
syslog_prefix: postroom-tests
"""


def _services(server: ImapServer, programs: Path) -> str:
    listening = "\n".join(
        f"""  {profile.replace("_", "")}{kind} cmd="{programs}/imapd {option}-C {server.folder}/{profile}.conf" """
        f"""listen="{address_of(profile)}:{port}" prefork=0 proto="tcp4" """
        for profile in PROFILES
        for kind, option, port in (("imap", "", server.port), ("imaps", "-s ", server.tls_port))
    )
    config = server.folder / "all.conf"
    return f"""
START {{
  recover cmd="{programs}/ctl_cyrusdb -C {config} -r"
}}
SERVICES {{
{listening}
}}
EVENTS {{
}}
"""


class _Password(socketserver.StreamRequestHandler):
    """One question of saslauthd: user, password, service and realm, each with its length before it."""

    def handle(self) -> None:
        fields = [self.rfile.read(int.from_bytes(self.rfile.read(2), "big")) for _ in range(4)]
        answer = b"OK" if fields[1] == PASSWORD.encode() else b"NO"
        self.wfile.write(len(answer).to_bytes(2, "big") + answer)


@contextmanager
def _password_daemon(path: Path) -> Generator[None]:
    with socketserver.ThreadingUnixStreamServer(str(path), _Password) as daemon:
        path.chmod(0o777)
        thread = threading.Thread(target=daemon.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield
        finally:
            daemon.shutdown()
            thread.join()
