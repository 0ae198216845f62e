-- name: select_first_tenants(place, lane, most)
-- The first tenants of each lane, each with whether it waits in another one too. Nothing is locked by reading: who chooses
-- holds the root, and keep_turns notices what others have changed since.
SELECT w.place, t.node_id, t.start, t.clock, t.weight, t.waiting, t.elsewhere
FROM unnest(:place::text::bigint[], :lane::text::text[], :most::text::bigint[]) AS w (place, lane, most) CROSS JOIN LATERAL (
    SELECT c.node_id, c.start, c.clock, c.weight, c.waiting, EXISTS (
        SELECT 1 FROM outbound_turns o WHERE o.level = 'tenant' AND o.node_id = c.node_id AND o.lane <> c.lane AND o.waiting > 0
    ) AS elsewhere
    FROM outbound_turns c WHERE c.lane = w.lane AND c.level = 'tenant' AND c.parent_id = 0 AND c.busy
    ORDER BY c.start, c.node_id LIMIT w.most
) AS t ORDER BY w.place, t.start, t.node_id

-- name: select_first_turns(place, lane, level, parent_id, most)
SELECT w.place, t.node_id, t.start, t.clock, t.weight, t.waiting
FROM unnest(:place::text::bigint[], :lane::text::text[], :level::text::text[], :parent_id::text::bigint[], :most::text::bigint[]) AS w (place, lane, level, parent_id, most)
CROSS JOIN LATERAL (
    SELECT c.node_id, c.start, c.clock, c.weight, c.waiting FROM outbound_turns c
    WHERE c.lane = w.lane AND c.level = w.level AND c.parent_id = w.parent_id AND c.busy ORDER BY c.start, c.node_id LIMIT w.most
) AS t ORDER BY w.place, t.start, t.node_id

-- name: select_first_ready(place, turn_id, retry, most)
SELECT w.place, r.seq, r.cost, r.bulk
FROM unnest(:place::text::bigint[], :turn_id::text::bigint[], :retry::text::boolean[], :most::text::bigint[]) AS w (place, turn_id, retry, most) CROSS JOIN LATERAL (
    SELECT m.seq, m.cost, m.bulk FROM outbound_ready m WHERE m.turn_id = w.turn_id AND m.retry = w.retry
    ORDER BY m.bulk, m.seq LIMIT w.most
) AS r ORDER BY w.place, r.bulk, r.seq

-- name: select_next_turns(wanted)
-- The next children of a node: a few steps into the index, however many there are.
SELECT w.place - 1, t.node_id, t.start, t.clock, t.weight, t.waiting
FROM jsonb_array_elements(:wanted::jsonb) WITH ORDINALITY AS w (value, place) CROSS JOIN LATERAL (
    SELECT c.node_id, c.start, c.clock, c.weight, c.waiting FROM outbound_turns c
    WHERE c.lane = w.value ->> 0 AND c.level = w.value ->> 1 AND c.parent_id = (w.value ->> 2)::bigint
        AND c.busy AND (c.start, c.node_id) > ((w.value ->> 3)::float8, (w.value ->> 4)::bigint)
    ORDER BY c.start, c.node_id LIMIT (w.value ->> 5)::bigint
) AS t ORDER BY w.place, t.start, t.node_id

-- name: select_next_ready(wanted)
SELECT w.place - 1, r.seq, r.cost, r.bulk
FROM jsonb_array_elements(:wanted::jsonb) WITH ORDINALITY AS w (value, place) CROSS JOIN LATERAL (
    SELECT m.seq, m.cost, m.bulk FROM outbound_ready m
    WHERE m.turn_id = (w.value ->> 0)::bigint AND m.retry = (w.value ->> 1)::boolean
        AND (m.bulk, m.seq) > ((w.value ->> 2)::boolean, (w.value ->> 3)::bigint)
    ORDER BY m.bulk, m.seq LIMIT (w.value ->> 4)::bigint
) AS r ORDER BY w.place, r.bulk, r.seq

-- name: select_first_mails(place, lane, tenant_id)
-- Of tenants in a lane: the first domain, its first sender and the first mail of that.
SELECT w.place, d.node_id, d.start, d.clock, d.weight, d.waiting, s.node_id, s.start, s.clock, s.weight, s.waiting, r.seq, r.cost, r.bulk
FROM unnest(:place::text::bigint[], :lane::text::text[], :tenant_id::text::bigint[]) AS w (place, lane, tenant_id) CROSS JOIN LATERAL (
    SELECT c.node_id, c.start, c.clock, c.weight, c.waiting FROM outbound_turns c
    WHERE c.lane = w.lane AND c.level = 'domain' AND c.parent_id = w.tenant_id AND c.busy ORDER BY c.start, c.node_id LIMIT 1
) AS d CROSS JOIN LATERAL (
    SELECT c.node_id, c.start, c.clock, c.weight, c.waiting FROM outbound_turns c
    WHERE c.lane = w.lane AND c.level = 'sender' AND c.parent_id = d.node_id AND c.busy ORDER BY c.start, c.node_id LIMIT 1
) AS s CROSS JOIN LATERAL (
    SELECT m.seq, m.cost, m.bulk FROM outbound_ready m WHERE m.turn_id = s.node_id AND m.retry = (w.lane = 'retry')
    ORDER BY m.bulk, m.seq LIMIT 1
) AS r

-- name: keep_turns(start, clock, taken, lane, level, node_id)
-- Rows that have only changed keep their places in the indexes: PostgreSQL sees that their start is the same. Each is looked
-- up by itself, or a plan made while there are few rows would go on to read them all. In the order of their keys, so that
-- two writers cannot deadlock. A row that somebody changes meanwhile is left out, and so is one that takes no part any more.
WITH given AS (
    SELECT * FROM unnest(:start::text::float8[], :clock::text::float8[], :taken::text::bigint[], :lane::text::text[], :level::text::text[], :node_id::text::bigint[])
        WITH ORDINALITY AS g (start, clock, taken, lane, level, node_id, place) ORDER BY level, lane, node_id
), kept AS (
    UPDATE outbound_turns t SET start = g.start, clock = g.clock, waiting = t.waiting - g.taken, busy = t.waiting > g.taken
    FROM given g CROSS JOIN LATERAL (
        SELECT c.ctid FROM outbound_turns c WHERE c.level = g.level AND c.node_id = g.node_id AND c.lane = g.lane LIMIT 1
    ) AS found
    WHERE t.ctid = found.ctid AND (t.busy OR t.level IN ('root', 'lane')) RETURNING g.place, t.waiting
)
SELECT array_agg(place - 1) AS places, array_agg(waiting) AS counts FROM kept

-- name: select_lanes_of_tenants(ids)
SELECT t.lane, t.node_id FROM unnest(:ids::bigint[]) AS e (id) CROSS JOIN LATERAL (
    SELECT c.lane, c.node_id FROM outbound_turns c WHERE c.level = 'tenant' AND c.node_id = e.id AND c.waiting > 0
) AS t

-- name: move_tenants_back(rows, lead)
UPDATE outbound_turns t
SET start = GREATEST(t.start, LEAST(t.start + (e ->> 2)::float8, l.clock + :lead / t.weight))
FROM jsonb_array_elements(:rows::jsonb) AS e, outbound_turns l
WHERE t.lane = e ->> 0 AND t.level = 'tenant' AND t.node_id = (e ->> 1)::bigint AND t.waiting > 0
    AND l.lane = t.lane AND l.level = 'lane' AND l.node_id = 0

-- name: lease_chosen(seqs, lease_token, lease_until, later, measured, now)
-- Mail whose mailbox cannot be used now is looked at again later; it is not held against it. Returns how much still waited.
WITH taken AS (
    DELETE FROM outbound_ready WHERE seq = ANY(:seqs::bigint[]) RETURNING mail_id, turn_id, retry
), free AS (
    SELECT m.id, t.turn_id, CASE WHEN t.turn_id = 0 THEN 'fifo' WHEN t.retry THEN 'retry' ELSE s.queue_lane END AS lane, COALESCE(a.state IN ('active', 'removed')
        AND NOT EXISTS (SELECT 1 FROM pauses p WHERE p.scope = CAST(m.account_id AS text))
        AND (a.state = 'removed'
            OR NOT EXISTS (SELECT 1 FROM restore_checks r WHERE r.account_id = m.account_id AND r.checked_at IS NULL)), m.account_id IS NULL) AS usable
    FROM taken t JOIN outbound_mail m ON m.id = t.mail_id JOIN senders s ON s.id = m.sender_id
        LEFT JOIN accounts a ON a.id = m.account_id
), leased AS (
    UPDATE outbound_mail m SET ready = false, updated_at = :now,
        state = CASE WHEN f.usable THEN 'sending' ELSE m.state END,
        lease_token = CASE WHEN f.usable THEN :lease_token::uuid END,
        lease_until = CASE WHEN f.usable THEN :lease_until::timestamptz END,
        leased_at = CASE WHEN f.usable THEN :now::timestamptz END,
        leased_lane = CASE WHEN f.usable THEN f.lane END,
        not_before = CASE WHEN f.usable THEN m.not_before ELSE :later::timestamptz END,
        leases = m.leases + CASE WHEN f.usable THEN 1 ELSE 0 END,
        discipline = CASE WHEN NOT f.usable THEN m.discipline WHEN :measured::boolean THEN CASE WHEN f.turn_id = 0 THEN 'fifo' ELSE 'fair' END END
    FROM free f WHERE f.id = m.id AND m.state IN ('queued', 'deferred')
)
SELECT count(*) FROM taken
