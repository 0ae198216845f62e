"""Two PostgreSQL servers, of which one replicates the other synchronously, and which take each other's place."""

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from support.postgres import USER, PostgresServer


class ReplicatedPostgres:
    """A primary and its standby. Every commit waits for the standby, once `replicate` was called."""

    def __init__(self, one: Path, other: Path, *, synchronous: bool = True) -> None:
        self.primary, self.standby = PostgresServer(one), PostgresServer(other)
        self._synchronous = synchronous

    def url(self, database: str) -> str:
        """Both servers: clients use the one that writes."""
        ports = sorted((self.primary.port, self.standby.port))
        hosts = ",".join(f"127.0.0.1:{port}" for port in ports)
        return f"postgresql://{USER}@{hosts}/{database}?target_session_attrs=read-write"

    def replicate(self) -> None:
        """Make the standby anew from the primary, and wait until it keeps up."""
        shutil.rmtree(self.standby.data, ignore_errors=True)
        self.primary.copy_to(self.standby)
        self.standby.start()
        if self._synchronous:
            self.primary.sql("ALTER SYSTEM SET synchronous_standby_names = '*'")
            self.primary.sql("SELECT pg_reload_conf()")
        state = "sync" if self._synchronous else "async"
        self.primary.wait_for_sql(f"SELECT count(*) FROM pg_stat_replication WHERE sync_state = '{state}'", "1")

    def fail_over(self) -> None:
        """Kill the primary as a power cut would, and promote the standby, which has nobody to wait for then."""
        self.primary.kill()
        self.standby.sql("SELECT pg_promote()")
        self.standby.wait_for_sql("SELECT pg_is_in_recovery()", "f")
        self.primary, self.standby = self.standby, self.primary

    def stop(self) -> None:
        for server in (self.standby, self.primary):
            server.stop()


@contextmanager
def replicated_postgres(database: str, *, synchronous: bool = True) -> Generator[ReplicatedPostgres]:
    with (
        TemporaryDirectory(prefix="postroom-pg-", ignore_cleanup_errors=True) as one,
        TemporaryDirectory(prefix="postroom-pg-", ignore_cleanup_errors=True) as other,
    ):
        servers = ReplicatedPostgres(Path(one), Path(other), synchronous=synchronous)
        try:
            servers.primary.start()
            servers.primary.sql(f"CREATE DATABASE {database}")
            servers.replicate()
            yield servers
        finally:
            servers.stop()
