"""Who is measured, and how an order reaches their process."""

import subprocess
import sys
from dataclasses import dataclass

from .install import ROOT, Peers
from .order import Order, Outcome

TIMEOUT_SECONDS = 3600.0


class SubjectFailedError(RuntimeError):
    """A subject ended with an error, or did not do the work it was asked to do."""


@dataclass(frozen=True)
class Subject:
    """A name in the table and the command that carries out its orders."""

    name: str
    command: tuple[str, ...]

    def ask(self, order: Order) -> Outcome:
        process = subprocess.Popen(
            [*self.command, order.to_json()], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        try:
            output, errors = process.communicate(timeout=TIMEOUT_SECONDS)
        except BaseException:
            process.kill()
            process.wait()
            raise
        if process.returncode != 0:
            raise SubjectFailedError(f"{self.name} could not {order.verb}:\n{errors.strip()[-2000:]}")
        return Outcome.from_json(output.splitlines()[-1])

    def measure(self, order: Order) -> Outcome:
        """Ask, and believe the figure only when every job was handled once and is finished in the database."""
        outcome = self.ask(order)
        if (outcome.handled, outcome.finished) != (order.count, order.count):
            raise SubjectFailedError(
                f"{self.name} was to {order.verb} {order.count} jobs; it handled {outcome.handled} "
                f"and the database shows {outcome.finished}"
            )
        return outcome


@dataclass(frozen=True)
class Field:
    """Every subject of this run, by the part it plays."""

    ours: Subject
    raw_postgres: Subject
    raw_sqlite: Subject
    procrastinate: Subject
    pgqueuer: Subject
    graphile_worker: Subject
    huey: Subject
    client: Subject
    bare: Subject


def field_of(peers: Peers) -> Field:
    def inside(name: str, label: str) -> Subject:
        return Subject(label, (sys.executable, "-m", "bench.subject", name))

    def python_peer(name: str) -> Subject:
        return Subject(name, (str(peers.python), "-m", f"bench.peers.{name}_peer"))

    script = ROOT / "bench" / "peers" / "graphile_worker_peer.mjs"
    return Field(
        ours=inside("ours", "postroom"),
        raw_postgres=inside("raw-postgres", "raw"),
        raw_sqlite=inside("raw-sqlite", "raw"),
        procrastinate=python_peer("procrastinate"),
        pgqueuer=python_peer("pgqueuer"),
        graphile_worker=Subject("graphile-worker", (str(peers.node), str(script), str(peers.node_modules_parent))),
        huey=python_peer("huey"),
        client=inside("client", "client"),
        bare=inside("client", "bare"),
    )
