-- name: select_fold(name)
SELECT since, until FROM figure_folds WHERE name = :name

-- name: insert_fold(name, since)
INSERT INTO figure_folds (name, since, until) VALUES (:name, :since, :since) ON CONFLICT DO NOTHING

-- name: move_fold(name, since, until)
-- Nothing if somebody else was faster.
UPDATE figure_folds SET until = :until WHERE name = :name AND until = :since RETURNING until

-- name: select_first_rollups()
SELECT min(hour) FROM rollups

-- name: select_first_outbound()
SELECT min(hour) FROM outbound_service

-- name: forget_rollups(start)
DELETE FROM rollup_spans WHERE start = :start

-- name: forget_outbound(day)
DELETE FROM outbound_service_days WHERE day = :day;
DELETE FROM outbound_times_days WHERE day = :day;
DELETE FROM outbound_results_days WHERE day = :day

-- name: forget_evenness(hour)
DELETE FROM outbound_evenness WHERE hour = :hour

-- name: select_kept_evenness(since, until)
SELECT hour, members, served, gini, jain FROM outbound_evenness WHERE hour >= :since AND hour < :until ORDER BY hour

-- name: fold_rollups(start, until)
INSERT INTO rollup_spans (measure, start, queue, name, endpoint_identity, bucket, count, total_ms)
SELECT measure, :start{::timestamptz}, queue, name, endpoint_identity, bucket, sum(count), sum(total_ms)
FROM rollups WHERE hour >= :start AND hour < :until GROUP BY measure, queue, name, endpoint_identity, bucket

-- name: fold_outbound(start, until)
INSERT INTO outbound_service_days (day, discipline, sender_id, mails, recipients)
SELECT :start{::timestamptz}, discipline, sender_id, sum(mails), sum(recipients)
FROM outbound_service WHERE hour >= :start AND hour < :until GROUP BY discipline, sender_id;
INSERT INTO outbound_times_days (day, measure, discipline, lane, bucket, count, total_us)
SELECT :start{::timestamptz}, measure, discipline, lane, bucket, sum(count), sum(total_us)
FROM outbound_times WHERE hour >= :start AND hour < :until GROUP BY measure, discipline, lane, bucket;
INSERT INTO outbound_results_days (day, destination, result, bounce_class, count)
SELECT :start{::timestamptz}, destination, result, bounce_class, sum(count)
FROM outbound_results WHERE hour >= :start AND hour < :until GROUP BY destination, result, bounce_class

-- name: sum_rollups_by_span(measure, since, begin, end, until, step_s)
-- From `begin` to `end` they are summed up already.
SELECT {span} AS place, queue, name, endpoint_identity, bucket, CAST(sum(count) AS bigint) AS count, CAST(sum(total_ms) AS bigint) AS total_ms
FROM (
    SELECT hour AS at, queue, name, endpoint_identity, bucket, count, total_ms FROM rollups
    WHERE measure = :measure AND hour >= :since AND hour < :begin
    UNION ALL SELECT hour, queue, name, endpoint_identity, bucket, count, total_ms FROM rollups
    WHERE measure = :measure AND hour >= :end AND hour < :until
    UNION ALL SELECT start, queue, name, endpoint_identity, bucket, count, total_ms FROM rollup_spans
    WHERE measure = :measure AND start >= :begin AND start < :end
) AS counted
GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5

-- name: select_depths(queue, since, until, step_s)
SELECT {span} AS place, tier, max(waiting) AS waiting
FROM queue_depths WHERE queue = :queue AND at >= :since AND at <= :until
GROUP BY 1, 2 ORDER BY 1, 2

-- name: select_sampled_spans(since, until, step_s)
SELECT DISTINCT {span} AS place FROM queue_depths WHERE at >= :since AND at < :until ORDER BY 1
