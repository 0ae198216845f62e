-- name: lease_deliveries(lease_token, lease_until, most, now)
UPDATE outbound SET state = 'sending', lease_token = :lease_token, lease_until = :lease_until, attempts = attempts + 1,
    updated_at = :now
WHERE id IN (
    SELECT o.id FROM outbound o JOIN accounts a ON a.id = o.account_id
    WHERE o.state IN ('queued', 'deferred') AND o.not_before <= :now AND a.state IN ('active', 'removed')
        AND NOT EXISTS (SELECT 1 FROM pauses p WHERE p.scope IN ('all', o.account_id))
        AND (a.state = 'removed'
            OR NOT EXISTS (SELECT 1 FROM restore_checks r WHERE r.account_id = o.account_id AND r.checked_at IS NULL))
    ORDER BY o.not_before, o.id LIMIT :most
)

-- name: lock_delivery(id)
SELECT state, action_id, draft_id FROM outbound WHERE id = :id

-- name: delete_auto_reply(action_id)
-- The answer was not sent: the next message may be answered. An answer has one recipient.
DELETE FROM auto_replies WHERE action_id = :action_id AND (account_id, sender) IN (
    SELECT o.account_id, json_extract(o.recipients_json, '$[0]') FROM outbound o WHERE o.action_id = :action_id
)
