-- name: fold_rollups(start, until)
INSERT INTO rollup_spans (measure, start, queue, name, endpoint_identity, bucket, count, total_ms)
SELECT measure, :start::timestamptz, queue, name, endpoint_identity, bucket, sum(count), sum(total_ms)
FROM rollups WHERE hour >= :start AND hour < :until GROUP BY measure, queue, name, endpoint_identity, bucket

-- name: fold_outbound(start, until)
INSERT INTO outbound_service_days (day, discipline, sender_id, mails, recipients)
SELECT :start::timestamptz, discipline, sender_id, sum(mails), sum(recipients)
FROM outbound_service WHERE hour >= :start AND hour < :until GROUP BY discipline, sender_id;
INSERT INTO outbound_times_days (day, measure, discipline, lane, bucket, count, total_us)
SELECT :start::timestamptz, measure, discipline, lane, bucket, sum(count), sum(total_us)
FROM outbound_times WHERE hour >= :start AND hour < :until GROUP BY measure, discipline, lane, bucket;
INSERT INTO outbound_results_days (day, destination, result, bounce_class, count)
SELECT :start::timestamptz, destination, result, bounce_class, sum(count)
FROM outbound_results WHERE hour >= :start AND hour < :until GROUP BY destination, result, bounce_class

-- name: sum_rollups_by_span(measure, since, begin, end, until, step_s)
-- From `begin` to `end` they are summed up already.
SELECT floor(extract(epoch FROM at - :since::timestamptz) / :step_s::integer)::integer AS place, queue, name, endpoint_identity, bucket, CAST(sum(count) AS bigint) AS count,
    CAST(sum(total_ms) AS bigint) AS total_ms
FROM (
    SELECT hour AS at, queue, name, endpoint_identity, bucket, count, total_ms FROM rollups
    WHERE measure = :measure AND hour >= :since AND hour < :begin
    UNION ALL SELECT hour, queue, name, endpoint_identity, bucket, count, total_ms FROM rollups
    WHERE measure = :measure AND hour >= :end AND hour < :until
    UNION ALL SELECT start, queue, name, endpoint_identity, bucket, count, total_ms FROM rollup_spans
    WHERE measure = :measure AND start >= :begin AND start < :end
) AS counted
GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5
