-- Whether a node takes part: something waits in it, and it is not held. With this in the index instead of the count, a
-- mail that is taken from many changes the row and no index. The primary key finds the lanes of a node too, so that one
-- index less is kept; and pages have room for changed rows.
ALTER TABLE outbound_turns ADD COLUMN busy boolean NOT NULL DEFAULT false;
UPDATE outbound_turns SET busy = waiting > 0 AND NOT held;
DROP INDEX outbound_turns_next;
DROP INDEX outbound_turns_node;
ALTER TABLE outbound_turns DROP CONSTRAINT outbound_turns_pkey, ADD PRIMARY KEY (level, node_id, lane);
CREATE INDEX outbound_turns_next ON outbound_turns (lane, level, parent_id, start, node_id) WHERE busy;
ALTER TABLE outbound_turns SET (fillfactor = 70);
