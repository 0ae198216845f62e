-- name: insert_suppression(tenant, address, cause, detail, mail_id, now)
INSERT INTO suppressions (tenant, address, cause, detail, mail_id, created_at)
VALUES (:tenant, :address, :cause, :detail, :mail_id, :now) ON CONFLICT (tenant, address) DO NOTHING

-- name: delete_suppression(tenant, address)
DELETE FROM suppressions WHERE tenant = :tenant AND address = :address RETURNING cause

-- name: select_suppressions(tenant, most)
SELECT tenant, address, cause, detail, created_at FROM suppressions
WHERE CAST(:tenant AS text) IS NULL OR tenant = :tenant ORDER BY created_at DESC, tenant, address LIMIT :most
