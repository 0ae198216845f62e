-- name: select_messages_of_id(id)
SELECT id FROM messages WHERE id = :id
UNION SELECT message_id FROM actions WHERE id = :id
UNION SELECT message_id FROM decisions WHERE id = :id
UNION SELECT id FROM messages WHERE inbox_id = :id

-- name: select_messages_of_name(provider_message_id, header_id)
SELECT id FROM messages
WHERE account_id IN (SELECT id FROM accounts) AND provider_message_id = :provider_message_id
UNION SELECT message_id FROM message_header_ids WHERE header_id = :header_id

-- name: select_mail_list(account_id, tier, only_kept, category, since, most)
SELECT m.id, m.account_id, m.account, m.sender, m.headers_json, m.subject, m.sent_at, m.labels_json, m.policy_tier,
    m.ingestion_tier, d.source, d.rule_name, x.id AS action_id, x.actor, x.action_type, x.parameters_json,
    x.state AS action_state,
    (SELECT u.state FROM action_links l JOIN actions u ON u.id = l.cause_action_id
        WHERE l.effect_action_id = x.id AND l.relation_type = 'undo_of') AS undone
FROM (SELECT m.*, a.email AS account FROM messages m JOIN accounts a ON a.id = m.account_id
    WHERE m.deleted_at IS NULL AND m.sent_at >= :since
        AND (CAST(:account_id AS text) IS NULL OR CAST(m.account_id AS text) = CAST(:account_id AS text))
        AND (CAST(:tier AS text) IS NULL OR m.policy_tier = CAST(:tier AS text))
        AND (NOT CAST(:only_kept AS boolean) OR NOT EXISTS (SELECT 1 FROM actions o WHERE o.message_id = m.id))
        AND (CAST(:category AS text) IS NULL OR EXISTS (SELECT 1 FROM message_categories c
            WHERE c.message_id = m.id AND c.category = CAST(:category AS text)))
    ORDER BY m.sent_at DESC, m.id DESC LIMIT :most) m
LEFT JOIN decisions d ON d.message_id = m.id AND NOT d.shadow
    AND d.generation = (SELECT max(generation) FROM decisions WHERE message_id = m.id AND NOT shadow)
LEFT JOIN actions x ON x.id = (SELECT o.id FROM actions o WHERE o.message_id = m.id AND o.actor <> 'undo'
    ORDER BY o.created_at DESC, o.id DESC LIMIT 1)
ORDER BY m.sent_at DESC, m.id DESC

-- name: select_arrival(id)
SELECT m.id, m.account_id, a.email AS account, m.provider_message_id, m.policy_tier, m.ingestion_tier, m.sender,
    m.subject, m.headers_json, m.labels_json, m.sent_at, m.created_at AS stored_at, m.deleted_at, m.pruned_at, m.on_demand,
    m.has_attachment, e.accepted_at, EXISTS (SELECT 1 FROM backfill_mail b WHERE b.message_id = m.id) AS is_backfilled,
    EXISTS (SELECT 1 FROM contacts c WHERE c.address = m.sender
        AND c.endpoint_identity IN ('', a.endpoint_identity)) AS is_contact,
    m.sender_doubt, m.reply_to_mine
FROM messages m JOIN accounts a ON a.id = m.account_id LEFT JOIN envelopes e ON e.id = m.inbox_id WHERE m.id = :id

-- name: select_undos_on(message_id)
SELECT l.effect_action_id AS action_id, u.state, u.executed_at, u.asked_by, u.error
FROM actions a JOIN action_links l ON l.effect_action_id = a.id AND l.relation_type = 'undo_of'
JOIN actions u ON u.id = l.cause_action_id WHERE a.message_id = :message_id ORDER BY u.created_at, u.id

-- name: select_envelope_of(message_id)
SELECT e.envelope_json FROM messages m JOIN envelopes e ON e.id = m.inbox_id WHERE m.id = :message_id
