-- name: select_messages_of_id(id)
SELECT id FROM messages WHERE id = :id
UNION SELECT message_id FROM actions WHERE id = :id
UNION SELECT message_id FROM decisions WHERE id = :id
UNION SELECT id FROM messages WHERE inbox_id = :id

-- name: select_messages_of_name(provider_message_id, header_id)
SELECT id FROM messages
WHERE account_id IN (SELECT id FROM accounts) AND provider_message_id = :provider_message_id
UNION SELECT message_id FROM message_header_ids WHERE header_id = :header_id

-- name: select_mail_rows(ids)
-- By ids, so that the database knows how few there are, and looks up what belongs to each.
SELECT m.id, m.account_id, a.email AS account, m.provider_message_id, m.sender, m.headers_json, m.subject,
    m.labels_json AS label_ids_json, m.policy_tier, m.ingestion_tier, m.sent_at, m.created_at AS stored_at, e.accepted_at,
    m.deleted_at, m.pruned_at, m.on_demand, m.has_attachment, m.reply_to_mine, m.sender_doubt,
    (SELECT COALESCE('["' || string_agg(c.category, '","') || '"]', '[]') FROM message_categories c
        WHERE c.message_id = m.id) AS categories_json,
    EXISTS (SELECT 1 FROM backfill_mail b WHERE b.message_id = m.id) AS is_backfilled,
    EXISTS (SELECT 1 FROM contacts c WHERE c.address = m.sender
        AND c.endpoint_identity IN ('', a.endpoint_identity)) AS is_contact,
    d.source, d.rule_name, d.confidence, d.rationale, d.action_type AS decided_type,
    d.parameters_json AS decided_parameters_json, d.safety_json AS safety,
    x.id AS action_id, x.actor, x.action_type, x.parameters_json, x.state AS action_state, x.error AS action_error,
    x.undo_hint_json, x.asked_by, x.rationale AS action_rationale, x.decision_id IS NOT NULL AS decided_action,
    (SELECT t.name FROM tokens t WHERE x.actor = 'agent' AND x.asked_by = 'token:' || CAST(t.id AS text)) AS agent,
    (SELECT u.state FROM action_links l JOIN actions u ON u.id = l.cause_action_id
        WHERE l.effect_action_id = x.id AND l.relation_type = 'undo_of') AS undone
FROM messages m JOIN accounts a ON a.id = m.account_id LEFT JOIN envelopes e ON e.id = m.inbox_id
LEFT JOIN decisions d ON d.message_id = m.id AND NOT d.shadow
    AND d.generation = (SELECT max(generation) FROM decisions WHERE message_id = m.id AND NOT shadow)
LEFT JOIN actions x ON x.id = (SELECT o.id FROM actions o WHERE o.message_id = m.id AND o.actor <> 'undo'
    ORDER BY o.created_at DESC, o.id DESC LIMIT 1)
WHERE m.id {= ANY(:ids::uuid[])}

-- name: select_label_names(accounts)
SELECT account_id, provider_label_id, name FROM labels WHERE account_id {= ANY(:accounts::uuid[])}

-- name: select_text(id, longest)
SELECT substr(body_text, 1, :longest), length(body_text) FROM messages WHERE id = :id

-- name: select_undos_on(message_id)
SELECT l.effect_action_id AS action_id, u.state, u.executed_at, u.asked_by, u.error
FROM actions a JOIN action_links l ON l.effect_action_id = a.id AND l.relation_type = 'undo_of'
JOIN actions u ON u.id = l.cause_action_id WHERE a.message_id = :message_id ORDER BY u.created_at, u.id

-- name: select_envelope_of(message_id)
SELECT e.envelope_json FROM messages m JOIN envelopes e ON e.id = m.inbox_id WHERE m.id = :message_id
