"""Bad input on the command line: one line that says what is wrong and what to do, quickly, and never a traceback."""

import contextlib
import subprocess
import sys
import time
from pathlib import Path

import pytest

from postroom.core.errors import BadInput
from postroom.core.rules.documents import read_documents
from support.patience import PATIENCE_S
from support.shell import Shell

RULE = "rules:\n  - name: x\n    "
# Files that are no rules. Each is refused.
DOCUMENTS = {
    "lists in lists": "a: " + "[" * 100_000,
    "objects in objects": "rules: " + "{a: " * 50_000 + "}" * 50_000,
    "blocks in blocks": "\n".join("  " * depth + "a:" for depth in range(900)),
    "items in items": "- " * 200_000,
    "JSON, too deep": "[" * 200_000,
    "a list as a key": f"{RULE}? [a, b]\n    : c\n",
    "an object as a key": f"{RULE}? {{a: 1}}\n    : c\n",
    "numbers and null as keys": f"{RULE}1: 2\n    null: 3\n",
    "a day as a key": "2026-01-01: x\n",
    "a list as the only key": "? [rules]\n: x\n",
    "a number as a condition": f"{RULE}if: {{1: 2}}\n    then: archive\n",
    "a rule that is nothing": "rules:\n  - \n",
    "a tab": "rules:\n\t- name: x\n",
    "a merge": f"{RULE}<<: {{a: b}}\n",
    "a NUL": 'rules:\n  - name: "a\\0b"\n    if: {sender_domain: x.example}\n    then: archive\n',
    "half a character": 'rules:\n  - name: "\\ud800"\n    if: {sender_domain: x.example}\n    then: archive\n',
    "a number of 5,000 digits": f"{RULE}priority: {'9' * 5_000}\n",
    "infinity": f"{RULE}priority: .inf\n    if: {{sender_domain: x.example}}\n    then: archive\n",
    "a day that does not exist": f"{RULE}scope: 2026-99-99\n",
    "nothing": "",
}


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_a_file_that_is_no_rules_is_refused_with_the_place(kind: str) -> None:
    with pytest.raises(BadInput):
        read_documents(DOCUMENTS[kind])


def test_a_deep_file_costs_no_more_than_a_flat_one_of_its_size(shell: Shell) -> None:
    """Counted in processor time beside a control in the same run: depth must be refused, not explored."""
    flat = "rules:\n" + "".join(
        f"- name: rule {number}\n  if: {{sender_domain: x.example}}\n  then: archive\n" for number in range(1_500)
    )
    control = _processor_time(flat)
    for kind in ("lists in lists", "objects in objects", "items in items", "JSON, too deep"):
        assert _processor_time(DOCUMENTS[kind]) < control, kind


def _processor_time(text: str) -> float:
    start = time.process_time()
    with contextlib.suppress(BadInput):
        read_documents(text)
    return time.process_time() - start


def test_a_folder_that_cannot_be_used_is_named_in_one_line(shell: Shell) -> None:
    file = shell.folder / "file"
    file.touch()
    for folder in (file, file / "below"):
        for words in ("migrate", "token create --role admin", "rules add rules.yaml", "contacts import x", "backup b"):
            (shell.folder / "rules.yaml").write_text(f"{RULE}if: {{sender_domain: x.example}}\n    then: archive\n")
            assert shell(*words.split(), "--data-dir", str(folder)) in (1, 2), words
            assert shell.err.startswith("postroom: "), (words, shell.err)
            assert shell.err.count("\n") == 1, (words, shell.err)


@pytest.mark.parametrize("command", ["serve", "demo", "worker", "submission"])
def test_what_serves_says_that_its_folder_cannot_be_used(command: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    program = "from postroom.app import main; main()"
    words = [sys.executable, "-c", program, command, "--data-dir", str(tmp_path / "file")]
    if command in ("serve", "demo"):
        words += ["--port", "0"]
    ended = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, timeout=PATIENCE_S)
    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr
    assert str(tmp_path / "file") in ended.stderr


def test_an_error_of_the_system_is_one_line(shell: Shell) -> None:
    shell.application.error = PermissionError(13, "Permission denied", "/somewhere/postroom.sqlite3")
    assert shell("jobs", "list") == 1
    assert shell.err.startswith("postroom: /somewhere/postroom.sqlite3: Permission denied; check that it exists")
