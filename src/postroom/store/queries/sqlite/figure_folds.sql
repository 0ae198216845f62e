-- name: sum_rollups_by_span(measure, since, begin, end, until, step_s)
-- From `begin` to `end` they are summed up already.
SELECT CAST((unixepoch(at) - unixepoch(:since)) / :step_s AS INTEGER) AS place, queue, name, endpoint_identity, bucket, CAST(sum(count) AS bigint) AS count,
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
