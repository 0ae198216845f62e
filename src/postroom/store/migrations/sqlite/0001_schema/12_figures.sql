-- Counts by hour, written with what they count. The shard only keeps writers out of each other's way; readers add the
-- shards up.

CREATE TABLE rollups (
    hour TEXT NOT NULL,
    measure TEXT NOT NULL
        CHECK (measure IN ('accepted', 'duplicate', 'wait', 'ended', 'decision', 'rule', 'override', 'job', 'outcome')),
    queue TEXT NOT NULL,
    name TEXT NOT NULL,
    endpoint_identity TEXT NOT NULL,
    bucket INTEGER NOT NULL,
    shard INTEGER NOT NULL,
    count INTEGER NOT NULL,
    total_ms INTEGER NOT NULL,
    PRIMARY KEY (hour, measure, queue, name, endpoint_identity, bucket, shard)
) STRICT;

-- How many messages waited, a few times an hour.
CREATE TABLE queue_depths (
    at TEXT NOT NULL,
    queue TEXT NOT NULL,
    tier TEXT NOT NULL,
    waiting INTEGER NOT NULL,
    PRIMARY KEY (at, queue, tier)
) STRICT, WITHOUT ROWID;

-- Until when the ended jobs are in the counts by hour. There is one row, or none before the first count.
CREATE TABLE job_counting (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    counted_until TEXT NOT NULL
) STRICT;

-- What each sender was served: mails leased, and their recipients. Domains and tenants are the sums of their senders.
CREATE TABLE outbound_service (
    hour TEXT NOT NULL,
    discipline TEXT NOT NULL CHECK (discipline IN ('fair', 'fifo')),
    sender_id INTEGER NOT NULL REFERENCES senders (id),
    mails INTEGER NOT NULL,
    recipients INTEGER NOT NULL,
    PRIMARY KEY (hour, discipline, sender_id)
) STRICT, WITHOUT ROWID;

-- How long it took, in buckets: from acceptance to the first lease, from acceptance to delivery, and to choose a batch,
-- which has no lane (`all`) and may hold mail of both disciplines.
CREATE TABLE outbound_times (
    hour TEXT NOT NULL,
    measure TEXT NOT NULL CHECK (measure IN ('wait', 'delivery', 'choosing')),
    discipline TEXT NOT NULL CHECK (discipline IN ('fair', 'fifo', 'both')),
    lane TEXT NOT NULL CHECK (lane IN ('high', 'normal', 'low', 'throttled', 'all')),
    bucket INTEGER NOT NULL,
    shard INTEGER NOT NULL,
    count INTEGER NOT NULL,
    total_us INTEGER NOT NULL,
    PRIMARY KEY (hour, measure, discipline, lane, bucket, shard)
) STRICT, WITHOUT ROWID;

-- What became of recipients, by hour and destination. `deferred` counts attempts.
CREATE TABLE outbound_results (
    hour TEXT NOT NULL,
    destination TEXT NOT NULL,
    result TEXT NOT NULL CHECK (result IN ('sent', 'deferred', 'bounced', 'rejected', 'expired')),
    bounce_class TEXT NOT NULL DEFAULT ''
        CHECK (bounce_class IN ('', 'hard', 'soft', 'policy', 'reputation', 'full', 'greylist', 'content', 'unexplained')),
    shard INTEGER NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (hour, destination, result, bounce_class, shard)
) STRICT, WITHOUT ROWID;

-- Counts by hour, summed up once their time is over, so that a page that shows weeks reads few rows: six hours of what came
-- in, and days of outgoing mail. `figure_folds` says which times are summed up.
CREATE TABLE figure_folds (
    name TEXT PRIMARY KEY,
    since TEXT NOT NULL,
    until TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE rollup_spans (
    measure TEXT NOT NULL,
    start TEXT NOT NULL,
    queue TEXT NOT NULL,
    name TEXT NOT NULL,
    endpoint_identity TEXT NOT NULL,
    bucket INTEGER NOT NULL,
    count INTEGER NOT NULL,
    total_ms INTEGER NOT NULL,
    PRIMARY KEY (measure, start, queue, name, endpoint_identity, bucket)
) STRICT, WITHOUT ROWID;
CREATE INDEX rollup_spans_start ON rollup_spans (start);

CREATE TABLE outbound_service_days (
    day TEXT NOT NULL,
    discipline TEXT NOT NULL,
    sender_id INTEGER NOT NULL REFERENCES senders (id),
    mails INTEGER NOT NULL,
    recipients INTEGER NOT NULL,
    PRIMARY KEY (day, discipline, sender_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE outbound_times_days (
    day TEXT NOT NULL,
    measure TEXT NOT NULL,
    discipline TEXT NOT NULL,
    lane TEXT NOT NULL,
    bucket INTEGER NOT NULL,
    count INTEGER NOT NULL,
    total_us INTEGER NOT NULL,
    PRIMARY KEY (day, measure, discipline, lane, bucket)
) STRICT, WITHOUT ROWID;

CREATE TABLE outbound_results_days (
    day TEXT NOT NULL,
    destination TEXT NOT NULL,
    result TEXT NOT NULL,
    bounce_class TEXT NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (day, destination, result, bounce_class)
) STRICT, WITHOUT ROWID;

-- How evenly tenants were served in an hour that is over.
CREATE TABLE outbound_evenness (
    hour TEXT PRIMARY KEY,
    members INTEGER NOT NULL,
    served INTEGER NOT NULL,
    gini REAL NOT NULL,
    jain REAL NOT NULL
) STRICT, WITHOUT ROWID;
