-- Counts by hour, written with what they count. The shard only keeps writers out of each other's way; readers add the
-- shards up.

CREATE TABLE rollups (
    hour timestamptz NOT NULL,
    measure text NOT NULL
        CHECK (measure IN ('accepted', 'duplicate', 'wait', 'ended', 'decision', 'rule', 'override', 'job', 'outcome')),
    queue text NOT NULL,
    name text NOT NULL,
    endpoint_identity text NOT NULL,
    bucket bigint NOT NULL,
    shard bigint NOT NULL,
    count bigint NOT NULL,
    total_ms bigint NOT NULL,
    PRIMARY KEY (hour, measure, queue, name, endpoint_identity, bucket, shard)
);

-- How many messages waited, a few times an hour.
CREATE TABLE queue_depths (
    at timestamptz NOT NULL,
    queue text NOT NULL,
    tier text NOT NULL,
    waiting bigint NOT NULL,
    PRIMARY KEY (at, queue, tier)
){| STRICT, WITHOUT ROWID};

-- Until when the ended jobs are in the counts by hour. There is one row, or none before the first count.
CREATE TABLE job_counting (
    only_row smallint PRIMARY KEY CHECK (only_row = 1),
    counted_until timestamptz NOT NULL
);

-- What each sender was served: mails leased, and their recipients. Domains and tenants are the sums of their senders.
CREATE TABLE outbound_service (
    hour timestamptz NOT NULL,
    discipline text NOT NULL CHECK (discipline IN ('fair', 'fifo')),
    sender_id bigint NOT NULL REFERENCES senders (id),
    mails bigint NOT NULL,
    recipients bigint NOT NULL,
    PRIMARY KEY (hour, discipline, sender_id)
) {WITH (fillfactor = 70)|STRICT, WITHOUT ROWID};

-- How long it took, in buckets: from acceptance to the first lease, from acceptance to delivery, and to choose a batch,
-- which has no lane (`all`) and may hold mail of both disciplines.
CREATE TABLE outbound_times (
    hour timestamptz NOT NULL,
    measure text NOT NULL CHECK (measure IN ('wait', 'delivery', 'choosing')),
    discipline text NOT NULL CHECK (discipline IN ('fair', 'fifo', 'both')),
    lane text NOT NULL CHECK (lane IN ('high', 'normal', 'low', 'throttled', 'all')),
    bucket bigint NOT NULL,
    shard bigint NOT NULL,
    count bigint NOT NULL,
    total_us bigint NOT NULL,
    PRIMARY KEY (hour, measure, discipline, lane, bucket, shard)
) {WITH (fillfactor = 70)|STRICT, WITHOUT ROWID};

-- What became of recipients, by hour and destination. `deferred` counts attempts.
CREATE TABLE outbound_results (
    hour timestamptz NOT NULL,
    destination text NOT NULL,
    result text NOT NULL CHECK (result IN ('sent', 'deferred', 'bounced', 'rejected', 'expired')),
    bounce_class text NOT NULL DEFAULT ''
        CHECK (bounce_class IN ('', 'hard', 'soft', 'policy', 'reputation', 'full', 'greylist', 'content', 'unexplained')),
    shard bigint NOT NULL,
    count bigint NOT NULL,
    PRIMARY KEY (hour, destination, result, bounce_class, shard)
) {WITH (fillfactor = 70)|STRICT, WITHOUT ROWID};

-- Counts by hour, summed up once their time is over, so that a page that shows weeks reads few rows: six hours of what came
-- in, and days of outgoing mail. `figure_folds` says which times are summed up.
CREATE TABLE figure_folds (
    name text PRIMARY KEY,
    since timestamptz NOT NULL,
    until timestamptz NOT NULL
){| STRICT, WITHOUT ROWID};

CREATE TABLE rollup_spans (
    measure text NOT NULL,
    start timestamptz NOT NULL,
    queue text NOT NULL,
    name text NOT NULL,
    endpoint_identity text NOT NULL,
    bucket bigint NOT NULL,
    count bigint NOT NULL,
    total_ms bigint NOT NULL,
    PRIMARY KEY (measure, start, queue, name, endpoint_identity, bucket)
){| STRICT, WITHOUT ROWID};
CREATE INDEX rollup_spans_start ON rollup_spans (start);

CREATE TABLE outbound_service_days (
    day timestamptz NOT NULL,
    discipline text NOT NULL,
    sender_id bigint NOT NULL REFERENCES senders (id),
    mails bigint NOT NULL,
    recipients bigint NOT NULL,
    PRIMARY KEY (day, discipline, sender_id)
){| STRICT, WITHOUT ROWID};

CREATE TABLE outbound_times_days (
    day timestamptz NOT NULL,
    measure text NOT NULL,
    discipline text NOT NULL,
    lane text NOT NULL,
    bucket bigint NOT NULL,
    count bigint NOT NULL,
    total_us bigint NOT NULL,
    PRIMARY KEY (day, measure, discipline, lane, bucket)
){| STRICT, WITHOUT ROWID};

CREATE TABLE outbound_results_days (
    day timestamptz NOT NULL,
    destination text NOT NULL,
    result text NOT NULL,
    bounce_class text NOT NULL,
    count bigint NOT NULL,
    PRIMARY KEY (day, destination, result, bounce_class)
){| STRICT, WITHOUT ROWID};

-- How evenly tenants were served in an hour that is over.
CREATE TABLE outbound_evenness (
    hour timestamptz PRIMARY KEY,
    members bigint NOT NULL,
    served bigint NOT NULL,
    gini double precision NOT NULL,
    jain double precision NOT NULL
){| STRICT, WITHOUT ROWID};
