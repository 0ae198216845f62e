-- name: insert_lanes()
INSERT INTO outbound_turns (lane, level, node_id, parent_id)
VALUES ('fifo', 'root', 0, 0), ('high', 'lane', 0, 0), ('normal', 'lane', 0, 0), ('low', 'lane', 0, 0), ('throttled', 'lane', 0, 0),
    ('retry', 'lane', 0, 0), ('fifo', 'lane', 0, 0)
ON CONFLICT DO NOTHING

-- name: select_lanes()
-- The root and the lanes, each with whether a tenant waits in it.
SELECT t.lane, t.level, t.start, t.clock, EXISTS (
    SELECT 1 FROM outbound_turns c WHERE c.lane = t.lane AND c.level = 'tenant' AND c.parent_id = 0 AND c.busy
) AS busy
FROM outbound_turns t WHERE t.level IN ('root', 'lane')

-- name: delete_ready(mail_id)
DELETE FROM outbound_ready WHERE mail_id = :mail_id RETURNING turn_id, retry

-- name: unready_mail(mail_id)
UPDATE outbound_mail SET ready = false WHERE id = :mail_id

-- name: select_any_turn()
-- One look into the index for each lane: there may be many tenants who have nothing to send.
WITH lanes (lane) AS (VALUES ('high'), ('normal'), ('low'), ('throttled'), ('retry'), ('fifo'))
SELECT 1 FROM lanes WHERE EXISTS (
    SELECT 1 FROM outbound_turns t WHERE t.lane = lanes.lane AND t.level = 'tenant' AND t.parent_id = 0 AND t.busy
) LIMIT 1

-- name: weigh_turns(level, node_id, weight)
UPDATE outbound_turns SET weight = :weight WHERE level = :level AND node_id = :node_id

-- name: place_sender(id, lane, held)
UPDATE senders SET queue_lane = :lane, queue_held = :held WHERE id = :id

-- name: select_miscounted_turns()
-- Nodes that count another number of waiting children than they have, or do not stand where they belong.
WITH mails AS (
    SELECT CASE WHEN r.turn_id = 0 THEN 'fifo' WHEN r.retry THEN 'retry' ELSE s.queue_lane END AS lane, r.turn_id AS node_id,
        count(*) AS waiting
    FROM outbound_ready r LEFT JOIN senders s ON s.id = r.turn_id GROUP BY 1, 2
), right_counts AS (
    SELECT lane, 'sender' AS level, node_id, waiting FROM mails
    UNION ALL SELECT lane, 'domain', parent_id, count(*) FROM outbound_turns
    WHERE level = 'sender' AND waiting > 0 AND NOT held GROUP BY lane, parent_id
    UNION ALL SELECT lane, 'tenant', parent_id, count(*) FROM outbound_turns
    WHERE level = 'domain' AND waiting > 0 AND NOT held GROUP BY lane, parent_id
)
SELECT t.lane, t.level, t.node_id, t.waiting, COALESCE(c.waiting, 0) AS right_count
FROM outbound_turns t LEFT JOIN right_counts c ON c.lane = t.lane AND c.level = t.level AND c.node_id = t.node_id
WHERE t.level IN ('tenant', 'domain', 'sender')
    AND (t.waiting <> COALESCE(c.waiting, 0) OR t.busy <> (t.waiting > 0 AND NOT t.held))
UNION ALL SELECT c.lane, c.level, c.node_id, 0, c.waiting FROM right_counts c WHERE NOT EXISTS (
    SELECT 1 FROM outbound_turns t WHERE t.lane = c.lane AND t.level = c.level AND t.node_id = c.node_id
)

-- name: lock_turns()
-- Batches are chosen one after another: each depends on the turns that the last one left.
SELECT 1 FROM outbound_turns WHERE level = 'root' {FOR UPDATE}

-- name: subtract_waiting(rows)
UPDATE outbound_turns SET waiting = waiting - (value ->> 3){::bigint}, busy = waiting > (value ->> 3){::bigint} AND NOT held
FROM {jsonb_array_elements(:rows::jsonb)} AS e
WHERE outbound_turns.lane = value ->> 0 AND outbound_turns.level = value ->> 1 AND outbound_turns.node_id = (value ->> 2){::bigint}
RETURNING lane, node_id, waiting, held

-- name: lock_lanes(level, node_id)
-- A node in every lane that it has been in.
SELECT lane, waiting FROM outbound_turns WHERE level = :level AND node_id = :node_id {ORDER BY lane FOR UPDATE}

-- name: hold_turns(level, node_id, held)
UPDATE outbound_turns SET held = :held, busy = waiting > 0 AND NOT :held{::boolean} WHERE level = :level AND node_id = :node_id AND held <> :held
RETURNING lane, waiting

-- name: select_sender_turns(ids)
SELECT s.id, s.domain_id, d.tenant_id, t.name AS tenant, s.weight, d.weight AS domain_weight, t.weight AS tenant_weight,
    t.state = 'paused' AS tenant_paused, s.queue_lane AS lane, s.queue_held AS held
FROM senders s JOIN sender_domains d ON d.id = s.domain_id JOIN tenants t ON t.id = d.tenant_id WHERE s.id {= ANY(:ids::bigint[])}

-- name: insert_ready(rows)
INSERT INTO outbound_ready (seq, mail_id, turn_id, retry, bulk, cost)
SELECT (value ->> 0){::bigint}, (value ->> 1){::uuid}, (value ->> 2){::bigint}, (value ->> 3){::boolean}, (value ->> 4){::boolean}, (value ->> 5){::bigint}
FROM {jsonb_array_elements(:rows::jsonb)} AS e

-- name: lock_ready(after, most)
SELECT r.seq, r.turn_id, r.retry, m.sender_id, m.message_class,
    EXISTS (SELECT 1 FROM outbound_recipients p WHERE p.mail_id = m.id AND p.attempts > 0) AS tried
FROM outbound_ready r JOIN outbound_mail m ON m.id = r.mail_id WHERE r.seq > :after ORDER BY r.seq LIMIT :most {FOR UPDATE OF r}

-- name: move_ready(rows)
UPDATE outbound_ready SET turn_id = (value ->> 1){::bigint}, retry = (value ->> 2){::boolean}, bulk = (value ->> 3){::boolean}
FROM {jsonb_array_elements(:rows::jsonb)} AS e WHERE outbound_ready.seq = (value ->> 0){::bigint}

-- name: wake_mail(most, now)
-- Mail that has become due, or that its holder gave back: from now on it waits for its turn.
UPDATE outbound_mail SET ready = true WHERE id IN (
    SELECT id FROM outbound_mail WHERE state IN ('queued', 'deferred') AND NOT ready AND not_before <= :now
    ORDER BY not_before, seq LIMIT :most {FOR UPDATE SKIP LOCKED}
)
RETURNING id, seq, sender_id, message_class,
    (SELECT count(*) FROM outbound_recipients r WHERE r.mail_id = outbound_mail.id AND r.state IN ('queued', 'deferred')) AS cost,
    EXISTS (SELECT 1 FROM outbound_recipients r WHERE r.mail_id = outbound_mail.id AND r.attempts > 0) AS retry

-- name: add_waiting(rows)
-- In the order of their keys, so that two writers cannot deadlock.
INSERT INTO outbound_turns (lane, level, node_id, parent_id, weight, waiting, held, busy)
SELECT value ->> 0, value ->> 1, (value ->> 2){::bigint}, (value ->> 3){::bigint}, (value ->> 4){::float8}, (value ->> 5){::bigint},
    (value ->> 6){::boolean}, NOT (value ->> 6){::boolean}
FROM {jsonb_array_elements(:rows::jsonb)} AS e ORDER BY 1, 2, 3
ON CONFLICT (lane, level, node_id)
DO UPDATE SET waiting = outbound_turns.waiting + excluded.waiting, weight = excluded.weight, busy = NOT outbound_turns.held
RETURNING lane, node_id, waiting, held
