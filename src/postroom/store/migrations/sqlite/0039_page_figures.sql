-- Figures for the pages: jobs that ended by hour, overrides of the starvation guard, and how much waited over time; and
-- an index for what ended unread, newest first.

-- SQLite cannot change a CHECK, so the table is made anew under its own name.
CREATE TABLE old_rollups AS SELECT * FROM rollups;
DROP TABLE rollups;
CREATE TABLE rollups (
    hour TEXT NOT NULL,
    measure TEXT NOT NULL CHECK (measure IN ('accepted', 'duplicate', 'wait', 'ended', 'decision', 'rule', 'outcome',
        'override', 'job')),
    queue TEXT NOT NULL,
    name TEXT NOT NULL,
    endpoint_identity TEXT NOT NULL,
    bucket INTEGER NOT NULL,
    shard INTEGER NOT NULL,
    count INTEGER NOT NULL,
    total_ms INTEGER NOT NULL,
    PRIMARY KEY (hour, measure, queue, name, endpoint_identity, bucket, shard)
) STRICT;
INSERT INTO rollups SELECT * FROM old_rollups;
DROP TABLE old_rollups;

-- Until when the ended jobs are in the counts by hour. There is one row, or none before the first count.
CREATE TABLE job_counting (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    counted_until TEXT NOT NULL
) STRICT;

-- How many messages waited, a few times an hour.
CREATE TABLE queue_depths (
    at TEXT NOT NULL,
    queue TEXT NOT NULL,
    tier TEXT NOT NULL,
    waiting INTEGER NOT NULL,
    PRIMARY KEY (at, queue, tier)
) STRICT, WITHOUT ROWID;

CREATE INDEX inbox_ends_unread ON inbox_ends (state, seq) WHERE state IN ('failed', 'coalesced', 'auto_acked');
CREATE INDEX envelopes_summaries ON envelopes (queue, seq) WHERE members IS NOT NULL;
