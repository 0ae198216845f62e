-- name: lease_requests(endpoint_identity, most, lease_token, lease_until)
UPDATE connector_requests SET state = 'leased', lease_token = :lease_token, lease_until = :lease_until
WHERE id IN (
    SELECT id FROM connector_requests WHERE endpoint_identity = :endpoint_identity AND state = 'queued'
    ORDER BY created_at, id LIMIT :most
)
RETURNING id, kind, arguments_json, lease_until, expires_at, created_at
