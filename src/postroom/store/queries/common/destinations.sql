-- name: select_sts_policy(domain)
SELECT policy_id, mode, mx_json, expires_at FROM mta_sts_policies WHERE domain = :domain

-- name: upsert_sts_policy(domain, policy_id, mode, mx_json, expires_at)
INSERT INTO mta_sts_policies (domain, policy_id, mode, mx_json, expires_at)
VALUES (:domain, :policy_id, :mode, :mx_json, :expires_at)
ON CONFLICT (domain) DO UPDATE SET policy_id = excluded.policy_id, mode = excluded.mode, mx_json = excluded.mx_json,
    expires_at = excluded.expires_at

-- name: insert_dkim_key(id, domain, selector, algorithm, public_key, key_id, sealed, now)
INSERT INTO dkim_keys (id, domain, selector, algorithm, public_key, key_id, sealed, created_at)
VALUES (:id, :domain, :selector, :algorithm, :public_key, :key_id, :sealed, :now)
ON CONFLICT (domain, selector) DO NOTHING RETURNING id

-- name: select_dkim_keys(domain)
SELECT id, domain, selector, algorithm, public_key, key_id, sealed, created_at FROM dkim_keys
WHERE CAST(:domain AS text) IS NULL OR domain = :domain ORDER BY domain, created_at, selector

-- name: delete_dkim_key(domain, selector)
DELETE FROM dkim_keys WHERE domain = :domain AND selector = :selector RETURNING id
