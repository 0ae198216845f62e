-- name: insert_suppression(tenant, address, cause, detail, mail_id, now, expires_at)
-- The first cause is kept, unless it ends by itself.
INSERT INTO suppressions (tenant, address, cause, detail, mail_id, created_at, expires_at)
VALUES (:tenant, :address, :cause, :detail, :mail_id, :now, :expires_at)
ON CONFLICT (tenant, address) DO UPDATE SET cause = excluded.cause, detail = excluded.detail, mail_id = excluded.mail_id,
    created_at = excluded.created_at, expires_at = excluded.expires_at
WHERE suppressions.expires_at IS NOT NULL

-- name: delete_suppression(tenant, address)
DELETE FROM suppressions WHERE tenant = :tenant AND address = :address RETURNING cause

-- name: select_suppressions(tenant, most)
SELECT tenant, address, cause, detail, created_at, expires_at FROM suppressions
WHERE CAST(:tenant AS text) IS NULL OR tenant = :tenant ORDER BY created_at DESC, tenant, address LIMIT :most

-- name: insert_strike(tenant, address, day, reply, mail_id, now)
INSERT INTO strikes (tenant, address, day, reply, mail_id, created_at)
VALUES (:tenant, :address, :day, :reply, :mail_id, :now) ON CONFLICT (tenant, address, day) DO NOTHING

-- name: count_strikes(tenant, address, since)
SELECT count(*) FROM strikes WHERE tenant = :tenant AND address = :address AND created_at > :since

-- name: delete_strikes(tenant, address)
DELETE FROM strikes WHERE tenant = :tenant AND address = :address RETURNING day

-- name: select_strikes(tenant, since, most)
SELECT tenant, address, count(*) AS days, max(created_at) AS last_at, (
    SELECT l.reply FROM strikes l WHERE l.tenant = s.tenant AND l.address = s.address ORDER BY l.created_at DESC LIMIT 1
) AS last_reply
FROM strikes s WHERE created_at > :since AND (CAST(:tenant AS text) IS NULL OR tenant = :tenant)
GROUP BY tenant, address ORDER BY max(created_at) DESC, tenant, address LIMIT :most

-- name: prune_suppressions(now, before)
DELETE FROM suppressions WHERE expires_at <= :now;
DELETE FROM strikes WHERE created_at < :before
