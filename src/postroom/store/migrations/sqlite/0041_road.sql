-- Counts by hour of what became of mail: its tier, who decided, and what was decided. SQLite cannot change a CHECK.
ALTER TABLE rollups RENAME TO old_rollups;
CREATE TABLE rollups (
    hour TEXT NOT NULL,
    measure TEXT NOT NULL CHECK (measure IN ('accepted', 'duplicate', 'wait', 'ended', 'decision', 'rule', 'override', 'job', 'outcome')),
    queue TEXT NOT NULL,
    name TEXT NOT NULL,
    endpoint_identity TEXT NOT NULL,
    bucket INTEGER NOT NULL,
    shard INTEGER NOT NULL,
    count INTEGER NOT NULL,
    total_ms INTEGER NOT NULL,
    PRIMARY KEY (hour, measure, queue, name, endpoint_identity, bucket, shard)
) STRICT;
INSERT INTO rollups SELECT hour, measure, queue, name, endpoint_identity, bucket, shard, count, total_ms FROM old_rollups;
DROP TABLE old_rollups;

-- What one actor did, or how often one thing was done, however long the log has become.
CREATE INDEX audit_actor ON audit (actor, seq);
CREATE INDEX audit_action ON audit (action, seq);
