-- name: select_listed_mail(ids)
SELECT m.id, m.account_id, a.email AS account, m.created_at AS at, m.sender, m.headers_json, m.subject, m.policy_tier,
    m.labels_json, m.reply_to_mine, m.sender_doubt, m.deleted_at IS NOT NULL AS is_gone,
    (SELECT COALESCE('["' || string_agg(c.category, '","') || '"]', '[]') FROM message_categories c
        WHERE c.message_id = m.id) AS categories_json,
    EXISTS (SELECT 1 FROM backfill_mail b WHERE b.message_id = m.id) AS is_backfilled,
    EXISTS (SELECT 1 FROM contacts c WHERE c.address = m.sender
        AND c.endpoint_identity IN ('', a.endpoint_identity)) AS is_contact,
    d.source, d.rule_name, d.confidence, d.rationale, d.action_type AS decided_type,
    d.parameters_json AS decided_parameters_json, d.safety_json AS safety,
    x.id AS action_id, x.actor, x.action_type, x.parameters_json, x.state AS action_state, x.error AS action_error,
    x.undo_hint_json, x.asked_by, x.rationale AS action_rationale, x.decision_id IS NOT NULL AS decided_action,
    (SELECT u.state FROM action_links l JOIN actions u ON u.id = l.cause_action_id
        WHERE l.effect_action_id = x.id AND l.relation_type = 'undo_of') AS undone
FROM messages m JOIN accounts a ON a.id = m.account_id
LEFT JOIN decisions d ON d.message_id = m.id AND NOT d.shadow
    AND d.generation = (SELECT max(generation) FROM decisions WHERE message_id = m.id AND NOT shadow)
LEFT JOIN actions x ON x.id = (SELECT o.id FROM actions o WHERE o.message_id = m.id AND o.actor <> 'undo'
    ORDER BY o.created_at DESC, o.id DESC LIMIT 1)
WHERE m.id IN (SELECT value FROM json_each(:ids))

-- name: select_listed_events(ids, length)
-- Of an event, the beginning of its text; of mail that is not stored, the envelope.
SELECT e.id, e.queue, e.tier, e.channel, e.endpoint_identity, e.sender, e.kind, e.members, e.accepted_at AS at,
    COALESCE(q.state, x.state) AS state, COALESCE(q.reason, x.reason) AS reason, x.ended_at,
    COALESCE(q.attempts, x.attempts) AS attempts, x.linked_to,
    substr(e.envelope_json ->> '$.payload.normalized_text', 1, :length) AS text,
    CASE WHEN e.queue = 'email' THEN e.envelope_json END AS envelope_json
FROM envelopes e LEFT JOIN inbox_queue q ON q.seq = e.seq LEFT JOIN inbox_ends x ON x.seq = e.seq
WHERE e.id IN (SELECT value FROM json_each(:ids))

-- name: select_feed(ids)
-- By ids, so that the database knows how few there are, and looks up what belongs to each.
SELECT i.id AS inbox_id, i.seq, i.accepted_at, i.tier, i.sender, m.subject,
    CASE WHEN m.id IS NULL THEN i.envelope_json END AS envelope_json, i.state, i.reason,
    d.action_type, COALESCE(d.parameters_json, '{}') AS parameters_json, d.source, d.rule_name, d.rationale,
    a.state AS action_state, a.error AS action_error,
    (SELECT u.state FROM action_links l JOIN actions u ON u.id = l.cause_action_id
        WHERE l.effect_action_id = a.id AND l.relation_type = 'undo_of') AS undone
FROM inbox i
LEFT JOIN messages m ON m.inbox_id = i.id
LEFT JOIN decisions d ON d.message_id = m.id AND NOT d.shadow
    AND d.generation = (SELECT max(generation) FROM decisions WHERE message_id = m.id AND NOT shadow)
LEFT JOIN actions a ON a.decision_id = d.id
WHERE i.id IN (SELECT value FROM json_each(:ids))
ORDER BY i.seq DESC
