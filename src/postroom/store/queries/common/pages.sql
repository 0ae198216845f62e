-- name: select_counted_until()
SELECT counted_until FROM job_counting

-- name: begin_counting(since)
INSERT INTO job_counting (only_row, counted_until) VALUES (1, :since) ON CONFLICT DO NOTHING

-- name: move_counting(since, until)
UPDATE job_counting SET counted_until = :until WHERE counted_until = :since RETURNING counted_until

-- name: prune_depths(before)
DELETE FROM queue_depths WHERE at < :before RETURNING at

-- name: select_unread(queue, state, before, looked, most)
SELECT x.seq, e.id AS message_id, e.queue, e.tier, e.kind, e.channel, e.envelope_json, e.accepted_at, x.state, x.reason,
    x.linked_to, x.ended_at
FROM (
    SELECT seq, state, reason, linked_to, ended_at FROM inbox_ends
    WHERE state = :state AND state IN ('failed', 'coalesced', 'auto_acked') AND seq < :before
    ORDER BY seq DESC LIMIT :looked
) AS x JOIN envelopes e ON e.seq = x.seq
WHERE e.queue = :queue
ORDER BY x.seq DESC LIMIT :most

-- name: select_summaries(queue, before, most)
SELECT e.seq, e.id AS message_id, e.queue, e.tier, e.members, e.envelope_json, e.accepted_at,
    COALESCE(q.state, x.state) AS state
FROM envelopes e LEFT JOIN inbox_queue q ON q.seq = e.seq LEFT JOIN inbox_ends x ON x.seq = e.seq
WHERE e.members IS NOT NULL AND e.queue = :queue AND e.seq < :before
ORDER BY e.seq DESC LIMIT :most

-- name: select_summary(id)
SELECT e.seq, e.id AS message_id, e.queue, e.tier, e.members, e.envelope_json, e.accepted_at,
    COALESCE(q.state, x.state) AS state
FROM envelopes e LEFT JOIN inbox_queue q ON q.seq = e.seq LEFT JOIN inbox_ends x ON x.seq = e.seq
WHERE e.id = :id AND e.members IS NOT NULL

-- name: select_member_views(id, after, most)
SELECT x.seq, e.id AS message_id, e.queue, e.tier, e.kind, e.channel, e.envelope_json, e.accepted_at, x.state, x.reason,
    x.linked_to, x.ended_at
FROM inbox_ends x JOIN envelopes e ON e.seq = x.seq
WHERE x.linked_to = :id AND x.seq > :after
ORDER BY x.seq LIMIT :most

-- name: count_waiting(queue, tier, most)
SELECT (SELECT count(*) FROM (
        SELECT 1 FROM inbox_queue WHERE state = 'waiting' AND queue = :queue AND tier = :tier LIMIT :most
    ) AS counted),
    (SELECT accepted_at FROM inbox_queue WHERE state = 'waiting' AND queue = :queue AND tier = :tier ORDER BY seq LIMIT 1)

-- name: count_leased(queue)
SELECT tier, count(*) FROM inbox_queue WHERE state = 'leased' AND queue = :queue GROUP BY tier

-- name: insert_depths(rows, at)
INSERT INTO queue_depths (at, queue, tier, waiting)
SELECT :at, value ->> 0, value ->> 1, (value ->> 2){::bigint} FROM {jsonb_array_elements(:rows::jsonb)} AS e WHERE true
ON CONFLICT DO NOTHING

-- name: select_waiting_named(queue, ids)
SELECT q.seq FROM inbox_queue q JOIN envelopes e ON e.seq = q.seq
WHERE e.id {= ANY(:ids::uuid[])} AND q.queue = :queue AND q.state = 'waiting' ORDER BY q.seq {FOR UPDATE OF q}

-- name: select_job_seqs()
SELECT (SELECT min(seq) FROM {job_bodies}), (SELECT max(seq) FROM {job_bodies})

-- name: select_workers()
SELECT l.holder, l.heartbeat_at, l.lease_until, COALESCE(r.running, 0) AS running
FROM job_leases l LEFT JOIN (
    SELECT lease_token, count(*) AS running FROM {job_queue} WHERE state = 'running' AND lease_token IS NOT NULL GROUP BY lease_token
) AS r ON r.lease_token = l.token
ORDER BY l.holder, l.token LIMIT 200

-- name: select_ended_rest(stage, before_at, before_seq, looked)
SELECT finished_at, seq FROM {job_ends}
WHERE state = :stage AND state <> 'completed' AND finished_at IS NOT NULL AND (finished_at, seq) < (:before_at, :before_seq)
ORDER BY finished_at DESC, seq DESC LIMIT 1 OFFSET :looked - 1
