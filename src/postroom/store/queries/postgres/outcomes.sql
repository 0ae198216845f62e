-- name: select_hands_on(ids, since)
-- Our current and recent actions on these messages, and the snoozes that hid them.
SELECT a.message_id, a.action_type, a.executed_at, COALESCE(a.undo_hint_json, '{}') AS hint FROM actions a
WHERE a.message_id = ANY(:ids::uuid[]) AND (a.state = 'executing'
    OR (a.state = 'completed' AND (a.executed_at > :since OR a.pre_image_json ->> 'unsnooze_job_id' IS NOT NULL)))

-- name: select_decided(ids)
-- The current decisions, and those made beside them in shadow: what was to be done, and what came of it.
SELECT d.id, d.message_id, d.shadow, d.action_type, d.parameters_json, d.rule_name, r.conditions_json, r.priority,
    a.executed_at, COALESCE(a.undo_hint_json, '{}') AS hint
FROM decisions d LEFT JOIN actions a ON a.decision_id = d.id AND a.state = 'completed' LEFT JOIN rules r ON r.id = d.rule_id
WHERE d.message_id = ANY(:ids::uuid[]) AND d.action_type <> 'none'
    AND d.generation = (SELECT max(x.generation) FROM decisions x WHERE x.message_id = d.message_id AND NOT x.shadow)
ORDER BY d.created_at, d.id

-- name: select_origins(ids)
-- Of a message whose sender is in doubt, the origin is unknown: nothing is learned from it.
SELECT id, account_id, CASE WHEN sender_doubt IS NULL THEN sender ELSE '' END AS sender,
    CASE WHEN sender_doubt IS NULL THEN substring(sender FROM '[^@]*$') ELSE '' END AS domain,
    CASE WHEN sender_doubt IS NULL THEN list_id ELSE '' END AS list_id
FROM messages WHERE id = ANY(:ids::uuid[])

-- name: select_same_origin(account_id, senders, domains, lists, since, most)
-- Recent mail from any of these, and whether we have acted on it.
SELECT m.id, m.sender, substring(m.sender FROM '[^@]*$') AS domain, m.list_id,
    COALESCE(m.arrival_labels_json, (SELECT r.labels_json FROM arrivals r WHERE r.message_id = m.id)) AS arrived, m.labels_json,
    m.deleted_at IS NOT NULL AS deleted,
    EXISTS (SELECT 1 FROM actions a WHERE a.message_id = m.id AND a.state IN ('executing', 'completed')) AS touched
FROM messages m WHERE m.sender_doubt IS NULL AND m.id IN (
    SELECT id FROM (SELECT id FROM messages WHERE account_id = :account_id AND sender = ANY(:senders::text[])
        AND sent_at >= :since ORDER BY sent_at DESC LIMIT :most) AS s
    UNION SELECT id FROM (SELECT id FROM messages WHERE account_id = :account_id AND substring(sender FROM '[^@]*$') = ANY(:domains::text[])
        AND sent_at >= :since ORDER BY sent_at DESC LIMIT :most) AS d
    UNION SELECT id FROM (SELECT id FROM messages WHERE account_id = :account_id AND list_id = ANY(:lists::text[])
        AND list_id <> '' AND sent_at >= :since ORDER BY sent_at DESC LIMIT :most) AS l)

-- name: select_proposals_like(fingerprints)
SELECT fingerprint, state, evidence_json FROM proposals WHERE fingerprint = ANY(:fingerprints::text[])

-- name: upsert_outcomes(rows, now)
INSERT INTO decision_outcomes (decision_id, agreed, what, observed_at)
SELECT (e ->> 0)::uuid, (e ->> 1)::boolean, e ->> 2, :now FROM jsonb_array_elements(:rows::jsonb) AS e ORDER BY e ->> 0
ON CONFLICT (decision_id) DO UPDATE
SET agreed = excluded.agreed, what = excluded.what, observed_at = excluded.observed_at
