-- An action that waits for a yes is `approved_pending`, as the requirements name it. (0019 says why it was not.)
DROP INDEX actions_awaiting, actions_live, actions_asked, actions_asking, actions_answered;
ALTER TABLE actions DROP CONSTRAINT actions_state_check;
UPDATE actions SET state = 'approved_pending' WHERE state = 'awaiting_approval';
ALTER TABLE actions ADD CONSTRAINT actions_state_check CHECK (state IN
    ('queued', 'approved_pending', 'executing', 'completed', 'failed', 'canceled', 'rejected', 'expired'));
CREATE INDEX actions_pending ON actions (expires_at) WHERE state = 'approved_pending';
CREATE INDEX actions_live ON actions (account_id, state) WHERE state IN ('queued', 'approved_pending', 'executing');
CREATE INDEX actions_asked ON actions (asked_by) WHERE state IN ('queued', 'approved_pending', 'executing');
CREATE INDEX actions_asking ON actions (created_at, id) WHERE state = 'approved_pending';
CREATE INDEX actions_answered ON actions (updated_at, id) WHERE expires_at IS NOT NULL AND state <> 'approved_pending';
