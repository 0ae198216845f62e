-- part: shown_action
SELECT a.id, a.account_id, a.message_id, a.actor, a.asked_by, a.action_type, a.parameters_json, a.state, a.action_hash,
    a.rationale, a.error, a.approved_by, a.expires_at, a.created_at, m.sender, m.subject, d.rule_name, d.confidence, a.safety_json,
    (SELECT t.name FROM tokens t WHERE a.actor = 'agent' AND a.asked_by = 'token:' || CAST(t.id AS text)) AS agent

-- part: with_its_message
FROM actions a JOIN messages m ON m.id = a.message_id LEFT JOIN decisions d ON d.id = a.decision_id

-- part: listed_actions
{shown_action}, a.decision_id, a.undo_hint_json, a.executed_at, d.source,
    (SELECT u.state FROM action_links l JOIN actions u ON u.id = l.cause_action_id
        WHERE l.effect_action_id = a.id AND l.relation_type = 'undo_of') AS undone
{with_its_message}
WHERE (CAST(:account_id AS text) IS NULL OR CAST(a.account_id AS text) = CAST(:account_id AS text))
    AND (CAST(:state AS text) IS NULL OR a.state = :state)

-- name: select_actions(account_id, state, before, before_id, most)
{listed_actions} AND (a.created_at, a.id) < (:before, :before_id)
ORDER BY a.created_at DESC, a.id DESC LIMIT :most

-- name: select_actions_on(account_id, state, message_id, before, before_id, most)
{listed_actions} AND a.message_id = :message_id AND (a.created_at, a.id) < (:before, :before_id)
ORDER BY a.created_at DESC, a.id DESC LIMIT :most

-- part: approvals
{shown_action}, c.email AS account, m.headers_json, d.model, m.policy_tier, m.snippet, a.updated_at
{with_its_message}
JOIN accounts c ON c.id = a.account_id

-- name: select_waiting(most)
-- Those that expire first come first.
{approvals} WHERE a.state = 'approved_pending' ORDER BY a.expires_at, a.id LIMIT :most

-- name: select_waiting_after(at, id, most)
{approvals}
WHERE a.state = 'approved_pending' AND (a.expires_at, a.id) > (:at, :id) ORDER BY a.expires_at, a.id LIMIT :most

-- name: select_answered_approvals(since, most)
-- An action that had to be approved is one that had a time to expire.
{approvals} WHERE a.expires_at IS NOT NULL AND a.state <> 'approved_pending' AND a.updated_at >= :since
ORDER BY a.updated_at DESC, a.id DESC LIMIT :most

-- name: select_approval(id)
{approvals} WHERE a.id = :id
