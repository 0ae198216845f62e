-- name: select_first_tenants(place, lane, most)
-- The first tenants of a lane, each with whether it waits in another one too.
SELECT :place, c.node_id, c.start, c.clock, c.weight, c.waiting, EXISTS (
    SELECT 1 FROM outbound_turns o INDEXED BY outbound_turns_node
    WHERE o.level = 'tenant' AND o.node_id = c.node_id AND o.lane <> c.lane AND o.waiting > 0
)
FROM outbound_turns c INDEXED BY outbound_turns_next WHERE c.lane = :lane AND c.level = 'tenant' AND c.parent_id = 0 AND c.busy
ORDER BY c.start, c.node_id LIMIT :most

-- name: select_first_turns(place, lane, level, parent_id, most)
SELECT :place, c.node_id, c.start, c.clock, c.weight, c.waiting
FROM outbound_turns c INDEXED BY outbound_turns_next
WHERE c.lane = :lane AND c.level = :level AND c.parent_id = :parent_id AND c.busy ORDER BY c.start, c.node_id LIMIT :most

-- name: select_first_ready(place, turn_id, retry, most)
SELECT :place, seq, cost, bulk FROM outbound_ready INDEXED BY outbound_ready_turns
WHERE turn_id = :turn_id AND retry = :retry ORDER BY bulk, seq LIMIT :most

-- name: select_next_turns(wanted)
-- The next children of each node that was asked for, one step into the index after another, however many there are. Many
-- have the same start: a comparison of (start, node_id) would be looked up by the start alone.
WITH RECURSIVE step (place, lane, level, parent_id, remaining, node_id, start, clock, weight, waiting) AS (
    SELECT key, value ->> 0, value ->> 1, value ->> 2, value ->> 5, value ->> 4, COALESCE(value ->> 3, -1e308), 0, 0, 0
    FROM json_each(:wanted)
    UNION ALL
    SELECT s.place, s.lane, s.level, s.parent_id, s.remaining - 1, c.node_id, c.start, c.clock, c.weight, c.waiting
    FROM step s JOIN outbound_turns c ON c.lane = s.lane AND c.level = s.level AND c.node_id = COALESCE((
        SELECT n.node_id FROM outbound_turns n INDEXED BY outbound_turns_next
        WHERE n.lane = s.lane AND n.level = s.level AND n.parent_id = s.parent_id AND n.busy
            AND n.start = s.start AND n.node_id > s.node_id
        ORDER BY n.node_id LIMIT 1
    ), (
        SELECT n.node_id FROM outbound_turns n INDEXED BY outbound_turns_next
        WHERE n.lane = s.lane AND n.level = s.level AND n.parent_id = s.parent_id AND n.busy
            AND n.start > s.start
        ORDER BY n.start, n.node_id LIMIT 1
    ))
    WHERE s.remaining > 0
)
SELECT place, node_id, start, clock, weight, waiting FROM step WHERE waiting > 0

-- name: select_next_ready(wanted)
WITH RECURSIVE step (place, turn_id, retry, remaining, bulk, seq, cost) AS (
    SELECT key, value ->> 0, value ->> 1, value ->> 4, value ->> 2, value ->> 3, 0 FROM json_each(:wanted)
    UNION ALL
    SELECT s.place, s.turn_id, s.retry, s.remaining - 1, r.bulk, r.seq, r.cost
    FROM step s JOIN outbound_ready r ON r.seq = COALESCE((
        SELECT n.seq FROM outbound_ready n INDEXED BY outbound_ready_turns
        WHERE n.turn_id = s.turn_id AND n.retry = s.retry AND n.bulk = s.bulk AND n.seq > s.seq ORDER BY n.seq LIMIT 1
    ), (
        SELECT n.seq FROM outbound_ready n INDEXED BY outbound_ready_turns
        WHERE n.turn_id = s.turn_id AND n.retry = s.retry AND n.bulk > s.bulk ORDER BY n.bulk, n.seq LIMIT 1
    ))
    WHERE s.remaining > 0
)
SELECT place, seq, cost, bulk FROM step WHERE cost > 0

-- name: select_first_mails(place, lane, tenant_id)
-- Of a tenant in a lane: the first domain, its first sender and the first mail of that.
SELECT :place, d.node_id, d.start, d.clock, d.weight, d.waiting, s.node_id, s.start, s.clock, s.weight, s.waiting, r.seq, r.cost, r.bulk
FROM outbound_turns d CROSS JOIN outbound_turns s CROSS JOIN outbound_ready r
WHERE d.lane = :lane AND d.level = 'domain' AND d.node_id = (
        SELECT n.node_id FROM outbound_turns n INDEXED BY outbound_turns_next
        WHERE n.lane = :lane AND n.level = 'domain' AND n.parent_id = :tenant_id AND n.busy
        ORDER BY n.start, n.node_id LIMIT 1)
    AND s.lane = :lane AND s.level = 'sender' AND s.node_id = (
        SELECT n.node_id FROM outbound_turns n INDEXED BY outbound_turns_next
        WHERE n.lane = :lane AND n.level = 'sender' AND n.parent_id = d.node_id AND n.busy
        ORDER BY n.start, n.node_id LIMIT 1)
    AND r.seq = (
        SELECT n.seq FROM outbound_ready n INDEXED BY outbound_ready_turns WHERE n.turn_id = s.node_id AND n.retry = (:lane = 'retry') ORDER BY n.bulk, n.seq LIMIT 1)

-- name: keep_turns(start, clock, taken, lane, level, node_id)
-- Two lists of rows: those that have moved, and those that have only changed. SQLite sorts a row in again if a statement
-- names a column of the index, whether or not its value changes.
UPDATE outbound_turns SET start = :start, clock = :clock, waiting = waiting - :taken, busy = waiting > :taken AND NOT held
WHERE lane = :lane AND level = :level AND node_id = :node_id;
UPDATE outbound_turns SET clock = :clock, waiting = waiting - :taken
WHERE lane = :lane AND level = :level AND node_id = :node_id

-- name: select_lanes_of_tenants(ids)
SELECT t.lane, t.node_id FROM json_each(:ids) AS e CROSS JOIN outbound_turns t
WHERE t.level = 'tenant' AND t.node_id = e.value AND t.waiting > 0

-- name: move_tenants_back(rows, lead)
UPDATE outbound_turns
SET start = max(outbound_turns.start, min(outbound_turns.start + (e.value ->> 2), l.clock + :lead / outbound_turns.weight))
FROM json_each(:rows) AS e, outbound_turns l
WHERE outbound_turns.lane = e.value ->> 0 AND outbound_turns.level = 'tenant' AND outbound_turns.node_id = e.value ->> 1
    AND l.lane = outbound_turns.lane AND l.level = 'lane' AND l.node_id = 0

-- name: lease_chosen(seqs, lease_token, lease_until, later, measured, now)
-- Mail whose mailbox cannot be used now is looked at again later; it is not held against it.
UPDATE outbound_mail SET ready = false, updated_at = :now, state = 'sending', lease_token = :lease_token, lease_until = :lease_until,
    leased_at = :now, leased_lane = (
        SELECT CASE WHEN r.turn_id = 0 THEN 'fifo' WHEN r.retry THEN 'retry' ELSE s.queue_lane END
        FROM outbound_ready r, senders s WHERE r.mail_id = outbound_mail.id AND s.id = outbound_mail.sender_id),
    leases = leases + 1, discipline = CASE WHEN :measured THEN (SELECT iif(r.turn_id = 0, 'fifo', 'fair') FROM outbound_ready r WHERE r.mail_id = outbound_mail.id) END
WHERE id IN (SELECT r.mail_id FROM json_each(:seqs) AS s JOIN outbound_ready r ON r.seq = s.value)
    AND state IN ('queued', 'deferred') AND (account_id IS NULL OR EXISTS (
        SELECT 1 FROM accounts a WHERE a.id = outbound_mail.account_id AND a.state IN ('active', 'removed')
            AND NOT EXISTS (SELECT 1 FROM pauses p WHERE p.scope = outbound_mail.account_id)
            AND (a.state = 'removed' OR NOT EXISTS (
                SELECT 1 FROM restore_checks c WHERE c.account_id = outbound_mail.account_id AND c.checked_at IS NULL))
    ));
UPDATE outbound_mail SET ready = false, not_before = :later, updated_at = :now
WHERE ready AND id IN (SELECT r.mail_id FROM json_each(:seqs) AS s JOIN outbound_ready r ON r.seq = s.value);
DELETE FROM outbound_ready WHERE seq IN (SELECT value FROM json_each(:seqs))
