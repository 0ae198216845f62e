-- name: shorten_leadership(name, until)
UPDATE leaders SET lease_until = :until WHERE name = :name AND lease_until > :until

-- name: select_leases_ahead(ahead)
SELECT token, lease_until, heartbeat_at FROM job_leases WHERE heartbeat_at > :ahead

-- name: shorten_message_leases(ahead, until)
UPDATE inbox_queue SET lease_until = :until WHERE state = 'leased' AND lease_until > :ahead RETURNING seq

-- name: shorten_mail_leases(ahead, until)
UPDATE outbound_mail SET lease_until = :until WHERE state = 'sending' AND lease_until > :ahead RETURNING id

-- name: shorten_request_leases(ahead, until)
UPDATE connector_requests SET lease_until = :until WHERE state = 'leased' AND lease_until > :ahead RETURNING id

-- name: forget_texts_ahead(ahead)
DELETE FROM inbox_texts WHERE expires_at > :ahead RETURNING queue

-- name: end_deferrals_ahead(ahead, now)
UPDATE outbound_mail SET not_before = :now
WHERE state = 'deferred' AND not_before > :now AND updated_at > :ahead RETURNING id
