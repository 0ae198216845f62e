-- name: is_indexing()
SELECT EXISTS (SELECT 1 FROM search_backlog)

-- name: select_backlog_sizes(below, most)
SELECT id, octet_length(body_text) FROM messages WHERE id < :below ORDER BY id DESC LIMIT :most

-- name: move_search_backlog(below)
UPDATE search_backlog SET below = :below

-- name: end_search_backlog()
DELETE FROM search_backlog

-- name: select_account_of(message_id)
SELECT account_id FROM messages WHERE id = :message_id

-- name: select_open_wishes(asked_by, most)
SELECT id, state, action_hash, safety_json FROM actions
WHERE asked_by = :asked_by AND state IN ('queued', 'approved_pending', 'executing') LIMIT :most

-- name: select_undo_candidate(id)
SELECT a.account_id, a.message_id, a.actor, a.action_type, a.state, a.undo_hint_json AS hint,
    (SELECT u.state FROM action_links l JOIN actions u ON u.id = l.cause_action_id
        WHERE l.effect_action_id = a.id AND l.relation_type = 'undo_of') AS undone,
    a.asked_by, a.approved_by
FROM actions a WHERE a.id = :id

-- name: count_done_for(asked_by, since)
-- What was done for a requester without a person's approval.
SELECT count(*) FROM actions
WHERE asked_by = :asked_by AND created_at > :since AND approved_at IS NULL
    AND state NOT IN ('approved_pending', 'rejected', 'expired')

-- name: count_undone_by(actor, since)
SELECT count(*) FROM audit
WHERE actor = :actor AND action = 'action.undo' AND at > :since AND after_json IS NULL

-- name: count_mailbox_searches(actor, since)
SELECT count(*) FROM audit WHERE actor = :actor AND action = 'mailbox.search' AND at > :since

-- name: select_search_backlog()
-- A second transaction finds nothing to do.
SELECT below FROM search_backlog {FOR UPDATE SKIP LOCKED}
