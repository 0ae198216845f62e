-- name: select_measured_mail(id)
SELECT m.discipline, m.admitted_at, s.queue_lane AS lane FROM outbound_mail m JOIN senders s ON s.id = m.sender_id
WHERE m.id = :id AND m.discipline IS NOT NULL

-- name: select_outbound_service(since, begin, end, until)
-- The days from `begin` to `end` are summed up already. Senders are looked up once, and not for every hour.
SELECT v.discipline, d.tenant_id, s.domain_id, v.sender_id, v.mails, v.recipients, t.weight AS tenant_weight,
    d.weight AS domain_weight, s.weight AS sender_weight
FROM (
    SELECT discipline, sender_id, CAST(sum(mails) AS bigint) AS mails, CAST(sum(recipients) AS bigint) AS recipients
    FROM (
        SELECT discipline, sender_id, mails, recipients FROM outbound_service WHERE hour >= :since AND hour < :begin
        UNION ALL SELECT discipline, sender_id, mails, recipients FROM outbound_service WHERE hour >= :end AND hour < :until
        UNION ALL SELECT discipline, sender_id, mails, recipients FROM outbound_service_days WHERE day >= :begin AND day < :end
    ) AS served GROUP BY discipline, sender_id
) AS v JOIN senders s ON s.id = v.sender_id JOIN sender_domains d ON d.id = s.domain_id JOIN tenants t ON t.id = d.tenant_id

-- name: select_outbound_times(since, begin, end, until)
SELECT measure, discipline, lane, bucket, CAST(sum(count) AS bigint) AS count, CAST(sum(total_us) AS bigint) AS total_us
FROM (
    SELECT measure, discipline, lane, bucket, count, total_us FROM outbound_times WHERE hour >= :since AND hour < :begin
    UNION ALL SELECT measure, discipline, lane, bucket, count, total_us FROM outbound_times WHERE hour >= :end AND hour < :until
    UNION ALL SELECT measure, discipline, lane, bucket, count, total_us FROM outbound_times_days WHERE day >= :begin AND day < :end
) AS timed GROUP BY measure, discipline, lane, bucket

-- name: prune_outbound_figures(before)
DELETE FROM outbound_service WHERE hour < :before;
DELETE FROM outbound_times WHERE hour < :before;
DELETE FROM outbound_results WHERE hour < :before;
DELETE FROM outbound_evenness WHERE hour < :before;
DELETE FROM outbound_service_days WHERE day < :before;
DELETE FROM outbound_times_days WHERE day < :before;
DELETE FROM outbound_results_days WHERE day < :before

-- name: select_waiting_lanes()
-- What waits in each lane and is not held back, and since when the first of it has been due. A sender's mail goes in order
-- of acceptance within its class, so that only the first of each class is looked at.
SELECT t.lane, CAST(sum(t.waiting) AS bigint) AS waiting, min((
    SELECT min(m.not_before) FROM outbound_mail m WHERE m.seq IN (
        SELECT min(r.seq) FROM outbound_ready r WHERE r.turn_id = t.node_id AND r.retry = (t.lane = 'retry') AND r.bulk = false
        UNION ALL
        SELECT min(r.seq) FROM outbound_ready r WHERE r.turn_id = t.node_id AND r.retry = (t.lane = 'retry') AND r.bulk = true
    ))) AS oldest_due_at
FROM outbound_turns t
    JOIN outbound_turns d ON d.lane = t.lane AND d.level = 'domain' AND d.node_id = t.parent_id
    JOIN outbound_turns p ON p.lane = t.lane AND p.level = 'tenant' AND p.node_id = d.parent_id AND NOT p.held
WHERE t.level = 'sender' AND t.waiting > 0 AND NOT t.held GROUP BY t.lane

-- name: select_held_by_throttles(now)
SELECT CAST(count(DISTINCT s.id) AS bigint) AS senders, CAST(COALESCE(sum(t.waiting), 0) AS bigint) AS mail FROM senders s
    LEFT JOIN outbound_turns t ON t.level = 'sender' AND t.node_id = s.id
WHERE s.throttled_until > :now

-- name: add_outbound_service(rows, hour)
INSERT INTO outbound_service (hour, discipline, sender_id, mails, recipients)
SELECT :hour{::timestamptz}, value ->> 0, (value ->> 1){::bigint}, (value ->> 2){::bigint}, (value ->> 3){::bigint}
FROM {jsonb_array_elements(:rows::jsonb)} AS e WHERE true
ON CONFLICT (hour, discipline, sender_id)
DO UPDATE SET mails = outbound_service.mails + excluded.mails, recipients = outbound_service.recipients + excluded.recipients

-- name: add_outbound_times(rows, hour, shard)
INSERT INTO outbound_times (hour, measure, discipline, lane, bucket, shard, count, total_us)
SELECT :hour{::timestamptz}, value ->> 0, value ->> 1, value ->> 2, (value ->> 3){::bigint}, :shard{::bigint}, (value ->> 4){::bigint}, (value ->> 5){::bigint}
FROM {jsonb_array_elements(:rows::jsonb)} AS e WHERE true
ON CONFLICT (hour, measure, discipline, lane, bucket, shard)
DO UPDATE SET count = outbound_times.count + excluded.count, total_us = outbound_times.total_us + excluded.total_us
