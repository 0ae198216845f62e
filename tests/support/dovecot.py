"""A real Dovecot on loopback, with a folder of its own and one listener for each profile."""

import os
import subprocess
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from support.imap_server import (
    PASSWORD,
    PROFILES,
    ImapServer,
    address_of,
    free_ports,
    ids_of,
    offered,
    server_folder,
    unprivileged,
    write_certificate,
)
from support.programs import system_program

CAPABILITIES = (
    "IMAP4rev1 SASL-IR ID ENABLE IDLE SORT MULTIAPPEND UNSELECT CHILDREN NAMESPACE UIDPLUS LIST-EXTENDED CONDSTORE "
    "QRESYNC ESEARCH SEARCHRES WITHIN LIST-STATUS BINARY MOVE STATUS=SIZE LITERAL+ NOTIFY SPECIAL-USE"
)
SPECIAL = {"Drafts": "Drafts", "Sent": "Sent", "Trash": "Trash", "Junk": "Spam", "Archive": "Archive"}


LOCALISED = {
    "Drafts": "Entwürfe",
    "Sent": "Gesendet",
    "Trash": "Papierkorb",
    "Junk": "Unerwünscht",
    "Archive": "Archiv",
}


@contextmanager
def running_dovecot(*, is_odd: bool = False, checks: Mapping[str, str] | None = None) -> Generator[ImapServer]:
    """A server for the block. An odd one has all folders in a namespace with a prefix, parted by dots, with names in
    German and no word on what they are for. With `checks`, access tokens are accepted too: each address tells about the
    token that is put after it, and names its user in this field.
    """
    program = system_program("dovecot", "dovecot-imapd")
    with server_folder("dovecot") as folder:
        port, tls_port = free_ports(2)
        server = ImapServer("dovecot", port, tls_port, folder)
        config = folder / "dovecot.conf"
        config.write_text(_config(server, is_odd=is_odd, checks=checks or {}))
        server.start([program, "-F", "-c", str(config)], subprocess.DEVNULL)
        try:
            server.wait_until_ready(folder / "log")
            yield server
        finally:
            server.stop()


def _config(server: ImapServer, *, is_odd: bool, checks: Mapping[str, str]) -> str:
    folder, user = server.folder, unprivileged()
    uid, gid = ids_of(user)
    mail = folder / "mail"
    mail.mkdir()
    os.chown(mail, uid, gid)
    certificate = write_certificate(folder, None)
    uses = dict.fromkeys(LOCALISED, "") if is_odd else {use: f"special_use = \\{use}\n" for use in SPECIAL}
    names = LOCALISED if is_odd else SPECIAL
    special = "\n".join(f'mailbox "{name}" {{\n{uses[use]}auto = create\n}}' for use, name in names.items())
    space = "prefix = INBOX.\n  separator = ." if is_odd else "separator = /"
    # As root, logins run as the user of the package; any other user cannot change, and needs no chroot.
    users = "" if os.geteuid() == 0 else f"default_internal_user = {user}\ndefault_login_user = {user}\n"
    services = "" if os.geteuid() == 0 else "".join(f"service {each} {{\nchroot =\n}}\n" for each in _CHROOTED)
    return f"""
protocols = imap
base_dir = {folder}/run
state_dir = {folder}/state
log_path = {folder}/log
listen = {", ".join(map(address_of, PROFILES))}
{users}{services}
first_valid_uid = 1
mail_uid = {uid}
mail_gid = {gid}
mail_location = maildir:{mail}/%u:LAYOUT=fs
ssl = yes
ssl_cert = <{certificate}
ssl_key = <{certificate}
disable_plaintext_auth = no
auth_mechanisms = plain login{" xoauth2 oauthbearer" if checks else ""}
auth_cache_size = 0
mail_max_userip_connections = 10000
imap_idle_notify_interval = 2 mins
mail_fsync = never
service imap-login {{
  process_min_avail = 1
  service_count = 0
  client_limit = 4000
  inet_listener imap {{
    port = {server.port}
  }}
  inet_listener imaps {{
    port = {server.tls_port}
    ssl = yes
  }}
}}
service imap {{
  service_count = 100
  process_min_avail = 1
  process_limit = 2000
}}
service anvil {{
  client_limit = 8000
}}
service stats {{
  client_limit = 8000
}}
service auth {{
  client_limit = 8000
}}
{_token_checks(folder, checks)}
passdb {{
  driver = static
  args = password={PASSWORD}
}}
userdb {{
  driver = static
  args = uid={uid} gid={gid} home={mail}/%u-home
}}
namespace inbox {{
  inbox = yes
  {space}
{special}
}}
{_profiles()}
"""


def _token_checks(folder: Path, checks: Mapping[str, str]) -> str:
    found: list[str] = []
    for number, (url, name) in enumerate(checks.items()):
        file = folder / f"oauth2-{number}.conf"
        where = "tokeninfo_url" if "tokeninfo" in url else "introspection_mode = get\nintrospection_url"
        active = "" if "tokeninfo" in url else "active_attribute = active\nactive_value = true\n"
        file.write_text(f"{where} = {url}\nusername_attribute = {name}\n{active}")
        found.append(f"passdb {{\ndriver = oauth2\nmechanisms = xoauth2 oauthbearer\nargs = {file}\n}}")
    return "\n".join(found)


_CHROOTED = ("imap-login", "anvil", "stats")


def _profiles() -> str:
    return "\n".join(
        f"local {address_of(each)} {{\nprotocol imap {{\nimap_capability = {offered(CAPABILITIES, each)}\n}}\n}}"
        for each in PROFILES
        if each != "all"
    )
