-- `jobs` is read under the same name and with the same columns on both databases, the last heartbeat of its worker among
-- them. That is one row for everything the worker has claimed, so the rows of jobs get a table of their own beneath a view.
ALTER TABLE jobs RENAME TO job_rows;
CREATE VIEW jobs AS
SELECT j.id, j.type, j.payload_json, j.priority, j.state, j.ready, j.attempts, j.max_attempts, j.not_before,
    j.idempotency_key, j.last_error, l.heartbeat_at, j.created_at, j.updated_at, j.finished_at, j.cancel_requested,
    j.parked_by, j.lease_token, l.lease_until, j.traceparent, j.releases_key, j.seq
FROM job_rows j
LEFT JOIN job_leases l ON l.token = j.lease_token;
