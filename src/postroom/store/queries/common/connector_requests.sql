-- name: insert_request(id, endpoint_identity, kind, arguments_json, now, expires_at)
INSERT INTO connector_requests (id, endpoint_identity, kind, arguments_json, state, created_at, expires_at)
VALUES (:id, :endpoint_identity, :kind, :arguments_json, 'queued', :now, :expires_at)

-- name: select_live_requests(endpoint_identity)
SELECT id, kind, arguments_json, state FROM connector_requests
WHERE endpoint_identity = :endpoint_identity AND state IN ('queued', 'leased') ORDER BY created_at, id

-- name: select_due_request(endpoint_identity, now)
SELECT 1 FROM connector_requests
WHERE endpoint_identity = :endpoint_identity
    AND (state = 'queued' OR (state = 'leased' AND (lease_until <= :now OR expires_at <= :now))) LIMIT 1

-- name: expire_requests(endpoint_identity, now)
UPDATE connector_requests SET state = 'expired', lease_token = NULL, lease_until = NULL, ended_at = :now
WHERE endpoint_identity = :endpoint_identity AND state IN ('queued', 'leased') AND expires_at <= :now RETURNING id

-- name: return_requests(endpoint_identity, now)
UPDATE connector_requests SET state = 'queued', lease_token = NULL, lease_until = NULL
WHERE endpoint_identity = :endpoint_identity AND state = 'leased' AND lease_until <= :now

-- name: end_request(id, endpoint_identity, lease_token, state, answer_json, error, now)
UPDATE connector_requests SET state = :state, lease_token = NULL, lease_until = NULL, answer_json = :answer_json,
    error = :error, ended_at = :now
WHERE id = :id AND endpoint_identity = :endpoint_identity AND state = 'leased' AND lease_token = :lease_token
RETURNING id

-- name: give_back_requests(endpoint_identity, lease_token)
UPDATE connector_requests SET state = 'queued', lease_token = NULL, lease_until = NULL
WHERE endpoint_identity = :endpoint_identity AND state = 'leased' AND lease_token = :lease_token RETURNING id

-- name: select_request(id)
SELECT id, endpoint_identity, kind, arguments_json, state, answer_json AS result, error, created_at,
    expires_at, ended_at
FROM connector_requests WHERE id = :id

-- name: prune_requests(before)
DELETE FROM connector_requests WHERE ended_at < :before

-- name: lease_requests(endpoint_identity, most, lease_token, lease_until)
UPDATE connector_requests SET state = 'leased', lease_token = :lease_token, lease_until = :lease_until
WHERE id IN (
    SELECT id FROM connector_requests WHERE endpoint_identity = :endpoint_identity AND state = 'queued'
    ORDER BY created_at, id LIMIT :most {FOR UPDATE SKIP LOCKED}
)
RETURNING id, kind, arguments_json, lease_until, expires_at, created_at
