"""Who is measured, and how an order reaches their process."""

import sys
from dataclasses import dataclass
from typing import Any

from .answers import SubjectFailedError, answer_of
from .install import ROOT, Peers
from .order import Order, Outcome

TIMEOUT_SECONDS = 3600.0


def outcome_of(said: dict[str, Any], what: str) -> Outcome:
    try:
        return Outcome(**said)
    except TypeError as error:
        raise SubjectFailedError(f"{what}: its answer is not an outcome ({error})") from None


@dataclass(frozen=True)
class Subject:
    """A name in the table and the command that carries out its orders."""

    name: str
    command: tuple[str, ...]
    timeout_s: float = TIMEOUT_SECONDS

    def ask(self, order: Order) -> Outcome:
        what = f"{self.name} could not {order.verb}"
        return outcome_of(answer_of([*self.command, order.to_json()], what, self.timeout_s), what)

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
