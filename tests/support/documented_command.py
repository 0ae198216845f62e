"""`postroom` in the commands of a page (`support/documents.py`): a process of the warm start.

A program without packages, so that it starts fast.
"""

import json
import os
import re
import socket
import sys
import tempfile
from collections.abc import Sequence
from typing import IO

from support.warm_request import send_request

SERVING = ("serve", "worker", "submission", "sandbox", "demo", "connector gmail", "connector redis-stream")
# Where another one is running already, these get a place of their own.
ALONE = ("serve", "sandbox", "demo")
NOUNS = {"undo": "actions", "do": "mail", "reclassify": "mail"}
UNKNOWN = re.compile("ID|01[0-9a-f]+…")
STOP = 2


def forked(arguments: Sequence[str], files: Sequence[int]) -> tuple[int, IO[str]]:
    """Run the command; its process and what that answers."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect("\0" + os.environ["WARM_START"])
    send_request(connection, files, arguments=arguments, folder=os.getcwd(), environment=os.environ)
    answers = connection.makefile()
    return int(answers.readline()), answers


def first_id(noun: str) -> str:
    """The id of the first thing in the list of this noun."""
    reading, writing = os.pipe()
    _, _answers = forked([noun, "list", "--json"], [0, writing, 2])
    os.close(writing)
    with os.fdopen(reading) as lines:
        found = [each for each in map(json.loads, lines) if each.get("became", "done") == "done"]
    if not found:
        sys.exit(f"there is no id for {noun}: the list is empty")
    return str(found[0].get("id", found[0].get("message_id")))


arguments = sys.argv[1:]
noun = NOUNS.get(arguments[0], arguments[0])
arguments = [first_id(noun) if UNKNOWN.fullmatch(each) else each for each in arguments]
if " ".join(arguments).startswith(SERVING):
    os.environ["POSTROOM_LOG_LEVEL"] = "info"
    if arguments[0] in ALONE:
        os.environ.update({"POSTROOM_DATA_DIR": tempfile.mkdtemp(dir=os.environ["HOME"]), "POSTROOM_WEB_PORT": "0"})
    reading, writing = os.pipe()
    # A worker says on its log alone that it has started.
    pid, answers = forked(arguments, [0, writing, writing if arguments[0] == "worker" else 2])
    os.close(writing)
    with os.fdopen(reading) as lines:
        said = next(lines, "")
        if said:
            os.kill(pid, STOP)
        print(said + lines.read(), end="")
    code = int(answers.readline())
    code = 0 if said and code == 130 else code
else:
    pid, answers = forked(arguments, [0, 1, 2])
    code = int(answers.readline())
sys.exit(code if code >= 0 else 128 - code)
