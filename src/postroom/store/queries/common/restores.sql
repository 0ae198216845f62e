-- name: insert_timeline(instance_id, epoch, ticks, place, now)
INSERT INTO timeline (instance_id, epoch, ticks, place, alive_at)
VALUES (:instance_id, :epoch, :ticks, :place, :now)

-- name: update_timeline(epoch, ticks, place, now)
UPDATE timeline SET epoch = :epoch, ticks = :ticks, place = :place, alive_at = :now

-- name: select_timeline()
SELECT instance_id, epoch, ticks, place, alive_at FROM timeline

-- name: insert_restore(epoch, noticed_by, backup_at, restored_at)
INSERT INTO restores (epoch, noticed_by, backup_at, restored_at)
VALUES (:epoch, :noticed_by, :backup_at, :restored_at)

-- name: require_restore_checks(epoch, since, restored_at)
-- A pending check keeps its earlier start.
INSERT INTO restore_checks (account_id, epoch, since, restored_at)
SELECT id, :epoch, :since, :restored_at FROM accounts WHERE state <> 'removed'
ON CONFLICT (account_id) DO UPDATE SET epoch = excluded.epoch, restored_at = excluded.restored_at, checked_at = NULL,
    since = CASE WHEN restore_checks.checked_at IS NULL AND restore_checks.since < excluded.since
        THEN restore_checks.since ELSE excluded.since END

-- name: select_pending_checks()
SELECT r.account_id, a.state AS account_state, r.epoch, r.since, r.restored_at
FROM restore_checks r JOIN accounts a ON a.id = r.account_id
WHERE r.checked_at IS NULL AND a.state <> 'removed' ORDER BY r.account_id

-- name: select_restore_check(account_id)
SELECT epoch, since, restored_at, checked_at FROM restore_checks WHERE account_id = :account_id

-- name: finish_restore_check(account_id, now)
UPDATE restore_checks SET checked_at = :now WHERE account_id = :account_id

-- name: select_send_request(action_id)
SELECT x.actor, x.created_at AS asked_at, COALESCE(d.generation, 1) = 1 AS is_first_decision, m.sent_at AS received_at
FROM actions x JOIN messages m ON m.id = x.message_id LEFT JOIN decisions d ON d.id = x.decision_id
WHERE x.id = :action_id

-- name: insert_restored_send(account_id, sent_message_id, delivery_id, source_key, sent_at)
INSERT INTO restored_sends (account_id, sent_message_id, delivery_id, source_key, sent_at)
VALUES (:account_id, :sent_message_id, :delivery_id, :source_key, :sent_at)
ON CONFLICT DO NOTHING

-- name: select_restored_send(account_id, source_key)
SELECT sent_message_id FROM restored_sends
WHERE account_id = :account_id AND source_key = :source_key AND settled_by IS NULL
ORDER BY sent_at, sent_message_id LIMIT 1

-- name: settle_restored_send(account_id, sent_message_id, delivery_id)
UPDATE restored_sends SET settled_by = :delivery_id
WHERE account_id = :account_id AND sent_message_id = :sent_message_id

-- name: select_open_mail(account_id)
SELECT id, action_id, state, source_key, asked_at FROM outbound_mail
WHERE account_id = :account_id AND state IN ('queued', 'sending', 'deferred', 'unknown') ORDER BY admitted_at, id

-- name: take_over_mail(id, lease_token, now)
-- Its holder is from before the restore.
UPDATE outbound_mail SET state = 'sending', lease_token = :lease_token, lease_until = :now, updated_at = :now
WHERE id = :id AND state IN ('queued', 'deferred', 'sending')

-- name: select_mail_state(id)
SELECT state FROM outbound_mail WHERE id = :id

-- name: select_known_send(delivery_id)
SELECT 1 FROM outbound_mail WHERE id = :delivery_id
UNION ALL SELECT 1 FROM restored_sends WHERE delivery_id = :delivery_id LIMIT 1

-- name: select_last_sign()
-- The oldest of the last mails that each account has delivered, and when the first account was made.
SELECT (SELECT min(last) FROM (SELECT max(ended_at) AS last FROM outbound_mail WHERE state = 'sent'
    GROUP BY account_id) AS deliveries), (SELECT min(created_at) FROM accounts)

-- name: lock_restore_check(account_id)
SELECT epoch, since, restored_at, checked_at FROM restore_checks WHERE account_id = :account_id {FOR UPDATE}

-- name: lock_timeline()
{LOCK TABLE timeline IN SHARE ROW EXCLUSIVE MODE;}
SELECT instance_id, epoch, ticks, place, alive_at FROM timeline
