-- Counts by hour of what became of mail: its tier, who decided, and what was decided.
ALTER TABLE rollups DROP CONSTRAINT rollups_measure_check;
ALTER TABLE rollups ADD CONSTRAINT rollups_measure_check
    CHECK (measure IN ('accepted', 'duplicate', 'wait', 'ended', 'decision', 'rule', 'override', 'job', 'outcome'));

-- What one actor did, or how often one thing was done, however long the log has become.
CREATE INDEX audit_actor ON audit (actor, seq);
CREATE INDEX audit_action ON audit (action, seq);
