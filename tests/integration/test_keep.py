"""The page on keeping it, run as it is written: on data of 0.1.0, and on two machines with one mailbox."""

import json
import re
import shlex
import shutil
import signal
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from postroom.system.wall_clock import wall_clock
from postroom.vault.keys import KeyFile
from support.documents import DOCS, Home, commands_in
from support.imap_mailbox import Beside
from support.imap_server import PASSWORD, ImapServer, authority
from support.patience import PATIENCE_S
from support.store.frozen_databases import FROZEN
from support.until import until_seen
from support.warm_start import ForkedProcess

CHECK, UPGRADE, GO_BACK, BACK_UP, MOVE, SIGN_IN, UNINSTALL = commands_in(DOCS / "how-to/keep.md")
MAIL = b"From: Ida <ida@shop.example>\nTo: mara@lindqvist.example\nSubject: %b\nMessage-ID: <%b@shop.example>\n\nHi!\n"
(RELEASED,) = [each for each in FROZEN if (each.version, each.dialect) == ("0.1.0-early", "sqlite")]


class Machine(Home):
    """A home, and the data folder in it."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        super().__init__(folder, {"POSTROOM_WEB_PORT": "0"})
        self.data = folder / ".local/share/postroom"

    @contextmanager
    def serving(self) -> Generator[ForkedProcess]:
        process = ForkedProcess(["serve", "--json"], self.folder, self.environment)
        try:
            assert json.loads(process.stdout.readline())["url"]
            yield process
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=PATIENCE_S)
        finally:
            process.kill()
            process.communicate()

    def subjects(self) -> set[str]:
        lines = self.run("postroom mail list --json").splitlines()
        return {json.loads(line)["subject"] for line in lines}


async def test_data_of_0_1_0_is_upgraded_and_leads_back_as_the_page_says(tmp_path: Path) -> None:
    machine = Machine(tmp_path / "a home")
    machine.data.mkdir(parents=True)
    await RELEASED.lay(RELEASED.parts()[0], machine.data, None)
    KeyFile(machine.data).add(wall_clock())
    plan = machine.run(CHECK)
    assert re.search(r"^database +0\.1\.0, [1-9]\d* migrations? to apply$", plan, re.MULTILINE)
    assert plan.rstrip().endswith("Next: run `postroom upgrade`")
    done = machine.run(UPGRADE)
    (kept,) = (machine.data / "backups").iterdir()
    assert f"backup   {kept}" in done
    back = re.search(r"^To go back: install Postroom 0\.1\.0 again and run `(.*)`", done, re.MULTILINE)
    assert back is not None
    assert "to date" in machine.run(UPGRADE), "there is nothing left to do"
    assert GO_BACK.replace("FILE", shlex.quote(str(kept))).strip() in back[1]
    said = machine.run(back[1])
    assert "restored" in said
    assert list(machine.data.glob("backup-replaced-*")), "nothing is deleted"
    machine.run(BACK_UP)
    assert list(machine.folder.glob("mail-*.postroom-backup"))


async def test_just_starting_the_new_version_backs_up_and_upgrades_too(tmp_path: Path) -> None:
    machine = Machine(tmp_path / "home")
    machine.data.mkdir(parents=True)
    await RELEASED.lay(RELEASED.parts()[0], machine.data, None)
    with machine.serving():
        (kept,) = (machine.data / "backups").iterdir()
        assert kept.name.startswith("0.1.0-")
        machine.run("postroom migrate --check")


def test_a_new_machine_reads_the_same_mailbox_and_lets_the_same_people_in(tmp_path: Path, dovecot: ImapServer) -> None:
    old, new, user = Machine(tmp_path / "old"), Machine(tmp_path / "new"), dovecot.new_user()
    authority().cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    mailbox = Beside(dovecot, user)
    mailbox.put(MAIL % (b"first", b"first"))
    old.run(
        f"postroom account add imap --email mara@lindqvist.example --user {user} --ca-file {tmp_path}/ca.pem "
        f"--imap-host 127.0.0.1 --imap-port {dovecot.tls_port} --json <<< '{PASSWORD}'\n"
        "postroom person add mara --role admin\n"
    )
    with old.serving():
        until_seen(lambda: old.subjects() == {"first"})
    old.run(BACK_UP)
    (copied,) = old.folder.glob("mail-*.postroom-backup")
    shutil.move(copied, new.folder)
    shutil.rmtree(old.data)
    mailbox.put(MAIL % (b"second", b"second"))
    before, after = MOVE.split("postroom serve\n")
    checked = new.run(before)
    assert "restored" in checked
    assert re.search(r"^ok +secret keys +1 available, 1 in use", checked, re.MULTILINE)
    assert new.subjects() == {"first"}
    with new.serving():
        until_seen(lambda: new.subjects() == {"first", "second"})
        new.run(after)
        assert "mara" in new.run(SIGN_IN.replace("NAME", "mara"))
        assert "the data is in use by process" in refused(new, "postroom uninstall --delete-data --yes")
    mailbox.close()
    assert str(new.data) in new.run(UNINSTALL)
    (new.data / "mine.txt").touch()
    (new.data / "connectors" / "elsewhere").symlink_to(tmp_path)
    assert "left:" in new.run("postroom uninstall --disconnect --delete-data --yes")
    assert [each.name for each in new.data.iterdir()] == ["mine.txt"]
    assert (tmp_path / "ca.pem").exists(), "what a link names is not followed"
    assert refused(new, "postroom uninstall --delete-data --yes").count("holds no data of Postroom") == 1


def refused(machine: Machine, command: str) -> str:
    return machine.run(f"{command} 2>&1 && exit 1 || true")
