-- name: lock_connecting()
-- One transaction writes at a time, so no lock is needed.
SELECT 1

-- name: lock_account(id)
-- One transaction writes at a time, so no lock is needed.
SELECT state, state_reason FROM accounts WHERE id = :id

-- name: lock_parking(key)
SELECT state FROM accounts WHERE 'account:' || id = :key

-- name: share_secret_key(id)
SELECT dropped_at FROM secret_keys WHERE id = :id

-- name: lock_secret_key(id)
SELECT dropped_at FROM secret_keys WHERE id = :id
