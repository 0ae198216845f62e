-- Counts by hour of what became of mail: its tier, who decided, and what was decided.
ALTER TABLE rollups DROP CONSTRAINT rollups_measure_check;
ALTER TABLE rollups ADD CONSTRAINT rollups_measure_check
    CHECK (measure IN ('accepted', 'duplicate', 'wait', 'ended', 'decision', 'rule', 'outcome'));

-- The failures of the last days, without a look at all other actions.
CREATE INDEX actions_failed ON actions (updated_at) WHERE state = 'failed';
