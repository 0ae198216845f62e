-- Whether a node takes part: something waits in it, and it is not held. With this in the index instead of the count, a
-- mail that is taken from many changes the row and no index.
ALTER TABLE outbound_turns ADD COLUMN busy INTEGER NOT NULL DEFAULT 0;
UPDATE outbound_turns SET busy = waiting > 0 AND NOT held;
DROP INDEX outbound_turns_next;
CREATE INDEX outbound_turns_next ON outbound_turns (lane, level, parent_id, start, node_id) WHERE busy;
