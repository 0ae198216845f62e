-- name: insert_token(id, role, identity, account_id, channels, sender_id, name, secret_sha256, expires_at, now)
INSERT INTO tokens (id, role, identity, account_id, channels, sender_id, name, secret_sha256, created_at, expires_at)
VALUES (:id, :role, :identity, :account_id, :channels, :sender_id, :name, :secret_sha256, :now, :expires_at)

-- name: select_tokens()
SELECT id, role, identity, account_id, channels, sender_id, name, created_at, expires_at, revoked_at, last_used_at FROM tokens
ORDER BY created_at DESC, id DESC

-- name: select_token(id)
SELECT id, role, identity, account_id, channels, sender_id, name, created_at, expires_at, revoked_at, last_used_at, secret_sha256 FROM tokens
WHERE id = :id

-- name: revoke_token(id, now)
UPDATE tokens SET revoked_at = :now WHERE id = :id AND revoked_at IS NULL RETURNING id

-- name: note_token_use(id, now, before)
UPDATE tokens SET last_used_at = :now WHERE id = :id AND (last_used_at IS NULL OR last_used_at <= :before) RETURNING id

-- name: select_revoked_token(id)
SELECT id FROM tokens WHERE CAST(id AS text) = :id AND revoked_at IS NOT NULL

-- name: select_open_actions_of(asked_by)
SELECT id, account_id, state, job_id FROM actions
WHERE asked_by = :asked_by AND state IN ('queued', 'approved_pending', 'executing') ORDER BY id

-- name: select_open_mail_of_action(account_id, action_id)
SELECT id FROM outbound_mail
WHERE account_id = :account_id AND action_id = :action_id AND state IN ('queued', 'sending', 'deferred', 'unknown')
