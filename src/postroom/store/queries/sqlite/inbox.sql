-- part: envelope
INSERT INTO envelopes (id, queue, tier, channel, provider, endpoint_identity, external_event_id, sender, kind,
    policy_tier, ingestion_tier, envelope_json, traceparent, copy_of, observed_at, accepted_at)

-- name: insert_inbox(rows, now)
-- A row is waiting, or ends at once as the duplicate of another.
{envelope}
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7,
    value ->> 8, value ->> 9, value ->> 10, value ->> 11, value ->> 12, value ->> 13, value ->> 14, :now
FROM json_each(:rows) ORDER BY key;
INSERT INTO inbox_ends (seq, state, attempts, reason, linked_to, ended_at)
SELECT e.seq, 'duplicate', 0, value ->> 16, value ->> 15, :now
FROM json_each(:rows) JOIN envelopes e ON e.id = value ->> 0 WHERE value ->> 15 IS NOT NULL;
INSERT INTO inbox_queue (seq, id, queue, tier, state, accepted_at)
SELECT e.seq, e.id, e.queue, e.tier, 'waiting', :now
FROM json_each(:rows) JOIN envelopes e ON e.id = value ->> 0 WHERE value ->> 15 IS NULL;

-- name: select_lines(queue, tiers, most)
-- The oldest of each tier: a few steps into the index, however long the queue is.
SELECT q.tier, q.seq, q.accepted_at, q.attempts = 0
FROM json_each(:tiers) AS t JOIN inbox_queue q ON q.seq IN (
    SELECT seq FROM inbox_queue WHERE state = 'waiting' AND queue = :queue AND tier = t.value ORDER BY seq LIMIT :most
)
ORDER BY q.seq

-- name: lease_inbox(seqs, token, until, turns, queue, streaks_json, turns_json, waits, hour, shard)
-- The streaks, the leases and the counts of waits: a batch in one block.
INSERT INTO rollups (hour, measure, queue, name, endpoint_identity, bucket, shard, count, total_ms)
SELECT :hour, value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, :shard, value ->> 5, value ->> 6
FROM json_each(:waits) WHERE true
ON CONFLICT (hour, measure, queue, name, endpoint_identity, bucket, shard)
DO UPDATE SET count = rollups.count + excluded.count, total_ms = rollups.total_ms + excluded.total_ms;
UPDATE queue_state SET streaks_json = :streaks_json, turns_json = :turns_json WHERE queue = :queue;
UPDATE inbox_queue SET state = 'leased', lease_token = :token, lease_until = :until, attempts = attempts + 1,
    turn_json = :turns ->> CAST(seq AS TEXT)
WHERE seq IN (SELECT value FROM json_each(:seqs)) AND state = 'waiting';
SELECT q.seq, q.attempts, e.id, e.policy_tier, e.ingestion_tier, e.endpoint_identity, e.envelope_json, e.traceparent,
    e.members, e.accepted_at
FROM json_each(:seqs) AS s JOIN inbox_queue q ON q.seq = s.value JOIN envelopes e ON e.seq = q.seq;

-- part: leased
-- Messages of `rows` that somebody holds.
q.seq IN (SELECT e.seq FROM json_each(:rows) AS r JOIN envelopes e ON e.id = r.value ->> 0)
    AND q.state = 'leased' AND q.lease_until >= :now

-- part: held
-- Those that are held under the lease given with them.
{leased} AND (q.id, q.lease_token) IN (SELECT value ->> 0, value ->> 1 FROM json_each(:rows))

-- name: ack_inbox(rows, now, hour, shard)
-- Rows are pairs of a message and the lease it is held under.
INSERT INTO rollups (hour, measure, queue, name, endpoint_identity, bucket, shard, count, total_ms)
SELECT :hour, 'ended', q.queue, 'done', '', -1, :shard, count(*), 0
FROM inbox_queue q WHERE {held} GROUP BY q.queue
ON CONFLICT (hour, measure, queue, name, endpoint_identity, bucket, shard)
DO UPDATE SET count = rollups.count + excluded.count;
INSERT INTO inbox_ends (seq, state, attempts, ended_at)
SELECT q.seq, 'done', q.attempts, :now FROM inbox_queue q WHERE {held};
DELETE FROM inbox_queue AS q WHERE {held}
RETURNING id, lease_token, queue, tier, accepted_at;

-- name: end_inbox(seqs, state, reason, linked_to, now)
INSERT INTO inbox_ends (seq, state, attempts, reason, linked_to, ended_at)
SELECT q.seq, :state, q.attempts, :reason, :linked_to, :now
FROM inbox_queue q WHERE q.seq IN (SELECT value FROM json_each(:seqs));
DELETE FROM inbox_queue WHERE seq IN (SELECT value FROM json_each(:seqs)) RETURNING seq, queue, tier, accepted_at;

-- name: replay_inbox(rows, queue, now)
-- Each pair is a past message and the id of its copy, which waits like a new one.
{envelope}
SELECT r.value ->> 1, v.queue, v.tier, v.channel, v.provider, v.endpoint_identity, v.external_event_id, v.sender,
    v.kind, v.policy_tier, v.ingestion_tier, v.envelope_json, v.traceparent, v.id, v.observed_at, :now
FROM json_each(:rows) AS r JOIN envelopes v ON v.id = r.value ->> 0 ORDER BY r.key;
INSERT INTO inbox_queue (seq, id, queue, tier, state, accepted_at)
SELECT e.seq, e.id, :queue, e.tier, 'waiting', :now FROM json_each(:rows) AS r JOIN envelopes e ON e.id = r.value ->> 1;
