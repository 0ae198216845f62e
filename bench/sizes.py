"""How much work each claim does: the real sizes, and a scale that only proves that everything runs."""

from dataclasses import dataclass

from .order import Database, Door, Terms


@dataclass(frozen=True)
class Sizes:
    """Slow peers get fewer jobs: rates are compared, and a shorter queue never hurts them."""

    drain: int
    drain_pgqueuer: int
    drain_procrastinate: int
    drain_huey: int
    enqueue: dict[int, int]  # calls for each number of producers, group commit
    enqueue_one_by_one: int
    small_backlog: int
    large_backlog: int
    claims: int
    claim_batch: int
    horizon: int
    consume: int
    consumers: tuple[int, ...]
    leases: int
    lease_batch: int
    ingest: dict[Door, int]  # messages
    arrive_s: float
    live_mail: int
    accounts_s: int
    new_mail: int
    bulk_before_s: int
    imap_mail: int
    imap_accounts: int
    imap_idle_s: int
    imap_new: int
    rest_s: int
    road: int
    road_s: int
    replayed: int
    searched: int
    beside_readers_mib: int
    backfill: int
    backfill_jobs: int
    beside_archive: dict[Terms, int]  # messages
    submission: int
    pages: dict[Database, int]  # messages, and as many jobs
    page_visits: int
    live_pages_s: int
    few_tenants: int
    many_tenants: int


FULL = Sizes(
    drain=200_000,
    drain_pgqueuer=60_000,
    drain_procrastinate=4_000,
    drain_huey=20_000,
    enqueue={16: 100_000, 256: 200_000},
    enqueue_one_by_one=8_000,
    small_backlog=10_000,
    large_backlog=1_000_000,
    claims=100,
    claim_batch=50,
    horizon=1_000_000,
    consume=100_000,
    consumers=(1, 2, 4),
    leases=50,
    lease_batch=100,
    ingest={"ingest.batch": 40_000, "ingest": 4_000, "http": 30_000},
    arrive_s=10.0,
    live_mail=50_000,
    accounts_s=30,
    new_mail=120,
    bulk_before_s=65,
    imap_mail=5_000,
    imap_accounts=1_000,
    imap_idle_s=60,
    imap_new=100,
    rest_s=60,
    road=3_000,
    road_s=30,
    replayed=50_000,
    searched=200_000,
    beside_readers_mib=512,
    backfill=50_000,
    backfill_jobs=10_000,
    beside_archive={"new": 5_000, "older": 15_000, "none": 40_000},
    submission=20_000,
    pages={"postgres": 1_000_000, "sqlite": 200_000},
    page_visits=30,
    live_pages_s=30,
    few_tenants=100,
    many_tenants=100_000,
)
QUICK = Sizes(
    drain=10_000,
    drain_pgqueuer=10_000,
    drain_procrastinate=500,
    drain_huey=2_000,
    enqueue={16: 5_000, 256: 10_000},
    enqueue_one_by_one=1_000,
    small_backlog=2_000,
    large_backlog=50_000,
    claims=20,
    claim_batch=50,
    horizon=50_000,
    consume=5_000,
    consumers=(1, 2, 4),
    leases=10,
    lease_batch=100,
    ingest={"ingest.batch": 2_000, "ingest": 200, "http": 1_000},
    arrive_s=2.0,
    live_mail=2_000,
    accounts_s=3,
    new_mail=20,
    bulk_before_s=3,
    imap_mail=200,
    imap_accounts=10,
    imap_idle_s=2,
    imap_new=5,
    rest_s=2,
    road=300,
    road_s=5,
    replayed=2_000,
    searched=2_000,
    beside_readers_mib=96,
    backfill=1_000,
    backfill_jobs=200,
    beside_archive={"new": 500, "older": 500, "none": 500},
    submission=1_000,
    pages={"postgres": 3_000, "sqlite": 3_000},
    page_visits=3,
    live_pages_s=5,
    few_tenants=10,
    many_tenants=500,
)
