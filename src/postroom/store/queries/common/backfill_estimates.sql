-- name: insert_backfill_estimate(id, endpoint_identity, request_json, result_json, created_by, now)
INSERT INTO backfill_estimates (id, endpoint_identity, request_json, result_json, created_by, created_at)
VALUES (:id, :endpoint_identity, :request_json, :result_json, :created_by, :now)

-- name: select_backfill_estimate(id)
SELECT id, endpoint_identity, request_json, result_json, created_by, created_at FROM backfill_estimates WHERE id = :id

-- name: select_backfill_outcome(job_id)
SELECT j.id AS job_id, j.status, j.rows_processed, r.spent_micros, r.estimate_id, e.result_json AS estimate_json,
    (SELECT count(DISTINCT c.message_id) FROM model_calls c
        WHERE c.backfill_job_id = j.id AND c.state IN ('answered', 'refused')) AS read_by_model,
    (SELECT count(*) FROM backfill_mail m WHERE m.job_id = j.id AND m.waits) AS waiting
FROM backfill_jobs j JOIN backfill_runs r ON r.job_id = j.id LEFT JOIN backfill_estimates e ON e.id = r.estimate_id
WHERE j.id = :job_id

-- name: select_finished_backfills(endpoint_identity, most)
-- Of a job whose mail was mostly known before, nothing can be learned about what mail costs.
SELECT e.result_json AS estimate_json,
    (SELECT count(DISTINCT c.message_id) FROM model_calls c
        WHERE c.backfill_job_id = j.id AND c.state IN ('answered', 'refused')) AS read_by_model
FROM backfill_jobs j JOIN backfill_runs r ON r.job_id = j.id JOIN backfill_estimates e ON e.id = r.estimate_id
WHERE j.endpoint_identity = :endpoint_identity AND j.status = 'completed' AND r.spent_micros > 0
    AND NOT EXISTS (SELECT 1 FROM backfill_mail m WHERE m.job_id = j.id AND m.waits)
    AND (SELECT count(*) FROM backfill_mail m WHERE m.job_id = j.id) * 2 >= r.accepted
ORDER BY j.completed_at DESC LIMIT :most
