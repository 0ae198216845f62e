-- Figures for the pages: jobs that ended by hour, overrides of the starvation guard, and how much waited over time; and
-- an index for what ended unread, newest first.

ALTER TABLE rollups DROP CONSTRAINT rollups_measure_check;
ALTER TABLE rollups ADD CONSTRAINT rollups_measure_check CHECK
    (measure IN ('accepted', 'duplicate', 'wait', 'ended', 'decision', 'rule', 'outcome',
        'override', 'job'));

-- Until when the ended jobs are in the counts by hour. There is one row, or none before the first count.
CREATE TABLE job_counting (
    only_row smallint PRIMARY KEY CHECK (only_row = 1),
    counted_until timestamptz NOT NULL
);

-- How many messages waited, a few times an hour.
CREATE TABLE queue_depths (
    at timestamptz NOT NULL,
    queue text NOT NULL,
    tier text NOT NULL,
    waiting bigint NOT NULL,
    PRIMARY KEY (at, queue, tier)
);

CREATE INDEX inbox_ends_unread ON inbox_ends (state, seq) WHERE state IN ('failed', 'coalesced', 'auto_acked');
CREATE INDEX envelopes_summaries ON envelopes (queue, seq) WHERE members IS NOT NULL;
