-- name: lease_deliveries(lease_token, lease_until, most, now)
UPDATE outbound SET state = 'sending', lease_token = :lease_token, lease_until = :lease_until, attempts = attempts + 1,
    updated_at = :now
WHERE id IN (
    SELECT o.id FROM outbound o JOIN accounts a ON a.id = o.account_id
    WHERE o.state IN ('queued', 'deferred') AND o.not_before <= :now AND a.state IN ('active', 'removed')
        AND NOT EXISTS (SELECT 1 FROM pauses p WHERE p.scope IN ('all', o.account_id))
    ORDER BY o.not_before, o.id LIMIT :most
)

-- name: lock_delivery(id)
SELECT state, action_id FROM outbound WHERE id = :id
