-- part: tally
-- How many decisions, and how the user reacted.
count(*) AS decisions,
    CAST(COALESCE(sum(CASE WHEN o.agreed THEN 1 ELSE 0 END), 0) AS bigint) AS agreed,
    CAST(COALESCE(sum(CASE WHEN o.decision_id IS NOT NULL AND NOT o.agreed THEN 1 ELSE 0 END), 0) AS bigint) AS disagreed

-- name: select_shadow_counts_of_rules()
-- What each shadow rule has decided in its current version, and how the user reacted.
SELECT r.id, {tally}
FROM rules r JOIN decisions d ON d.rule_id = r.id AND d.shadow AND d.created_at >= r.updated_at
LEFT JOIN decision_outcomes o ON o.decision_id = d.id
WHERE r.mode = 'shadow' AND r.enabled AND d.safety_json ->> 'shadow' = 'rule' GROUP BY r.id

-- name: select_shadow_counts()
-- The same for categories and the model in shadow, since they are in shadow.
SELECT s.kind, s.name, {tally}
FROM shadows s JOIN decisions d ON d.shadow AND d.created_at >= s.since
    AND d.safety_json ->> 'shadow' = CASE s.kind WHEN 'category' THEN 'category:' || s.name ELSE s.kind END
LEFT JOIN decision_outcomes o ON o.decision_id = d.id
GROUP BY s.kind, s.name

-- name: count_shadow(why, rule_id, since)
SELECT {tally} FROM decisions d LEFT JOIN decision_outcomes o ON o.decision_id = d.id
WHERE d.shadow AND d.created_at >= :since AND d.safety_json ->> 'shadow' = :why
    AND (CAST(:rule_id AS text) IS NULL OR CAST(d.rule_id AS text) = CAST(:rule_id AS text))

-- name: select_shadow_samples(why, rule_id, since, agreed, most)
SELECT d.message_id, m.sender, m.subject, d.created_at AS decided_at, d.action_type AS action, d.parameters_json,
    d.rule_name, o.what
FROM decisions d JOIN decision_outcomes o ON o.decision_id = d.id JOIN messages m ON m.id = d.message_id
WHERE d.shadow AND d.created_at >= :since AND o.agreed = :agreed AND d.safety_json ->> 'shadow' = :why
    AND (CAST(:rule_id AS text) IS NULL OR CAST(d.rule_id AS text) = CAST(:rule_id AS text))
ORDER BY o.observed_at DESC, d.id DESC LIMIT :most

-- name: select_outcomes(message_id)
SELECT o.decision_id, o.agreed, o.what, o.observed_at FROM decision_outcomes o
JOIN decisions d ON d.id = o.decision_id WHERE d.message_id = :message_id ORDER BY o.observed_at, o.decision_id

-- name: upsert_proposal(id, account_id, fingerprint, rule_json, evidence_json, now)
-- An accepted or dismissed proposal stays so, however often it is found again.
INSERT INTO proposals (id, account_id, fingerprint, rule_json, evidence_json, state, created_at, updated_at)
VALUES (:id, :account_id, :fingerprint, :rule_json, :evidence_json, 'open', :now, :now)
ON CONFLICT (fingerprint) DO UPDATE SET evidence_json = excluded.evidence_json, updated_at = excluded.updated_at
WHERE proposals.state = 'open'

-- name: count_open_proposals()
SELECT count(*) FROM proposals WHERE state = 'open'

-- part: proposals
SELECT p.id, p.account_id, a.email AS account, p.rule_json, p.evidence_json, p.state, p.rule_id, p.created_at, p.updated_at
FROM proposals p JOIN accounts a ON a.id = p.account_id

-- name: select_proposals(state, most)
{proposals} WHERE CAST(:state AS text) IS NULL OR p.state = :state
ORDER BY p.created_at DESC, p.id DESC LIMIT :most

-- name: select_proposal(id)
{proposals} WHERE p.id = :id

-- name: end_proposal(id, state, rule_id, now)
UPDATE proposals SET state = :state, rule_id = :rule_id, updated_at = :now WHERE id = :id AND state = 'open'
RETURNING id

-- name: select_hands_on(ids, since)
-- Our current and recent actions on these messages, and the snoozes that hid them.
SELECT a.message_id, a.action_type, a.executed_at, COALESCE(a.undo_hint_json, '{}') AS hint FROM actions a
WHERE a.message_id {= ANY(:ids::uuid[])} AND (a.state = 'executing'
    OR (a.state = 'completed' AND (a.executed_at > :since OR a.pre_image_json ->> 'unsnooze_job_id' IS NOT NULL)))

-- name: select_decided(ids)
-- The current decisions, and those made beside them in shadow: what was to be done, and what came of it.
SELECT d.id, d.message_id, d.shadow, d.action_type, d.parameters_json, d.rule_name, r.conditions_json, r.priority,
    a.executed_at, COALESCE(a.undo_hint_json, '{}') AS hint
FROM decisions d LEFT JOIN actions a ON a.decision_id = d.id AND a.state = 'completed' LEFT JOIN rules r ON r.id = d.rule_id
WHERE d.message_id {= ANY(:ids::uuid[])} AND d.action_type <> 'none'
    AND d.generation = (SELECT max(x.generation) FROM decisions x WHERE x.message_id = d.message_id AND NOT x.shadow)
ORDER BY d.created_at, d.id

-- name: select_proposals_like(fingerprints)
SELECT fingerprint, state, evidence_json FROM proposals WHERE fingerprint {= ANY(:fingerprints::text[])}

-- name: upsert_outcomes(rows, now)
INSERT INTO decision_outcomes (decision_id, agreed, what, observed_at)
SELECT (value ->> 0){::uuid}, (value ->> 1){::boolean}, value ->> 2, :now
FROM {jsonb_array_elements(:rows::jsonb)} AS e ORDER BY value ->> 0
ON CONFLICT (decision_id) DO UPDATE
SET agreed = excluded.agreed, what = excluded.what, observed_at = excluded.observed_at

-- name: select_origins(ids)
-- Of a message whose sender is in doubt, the origin is unknown: nothing is learned from it.
SELECT id, account_id, CASE WHEN sender_doubt IS NULL THEN sender ELSE '' END AS sender,
    CASE WHEN sender_doubt IS NULL THEN {sender_domain} ELSE '' END AS domain,
    CASE WHEN sender_doubt IS NULL THEN list_id ELSE '' END AS list_id
FROM messages WHERE id {= ANY(:ids::uuid[])}

-- name: select_same_origin(account_id, senders, domains, lists, since, most)
-- Recent mail from any of these, and whether we have acted on it.
SELECT m.id, m.sender, {sender_domain} AS domain, m.list_id,
    COALESCE(m.arrival_labels_json, (SELECT r.labels_json FROM arrivals r WHERE r.message_id = m.id)) AS arrived, m.labels_json,
    m.deleted_at IS NOT NULL AS deleted,
    EXISTS (SELECT 1 FROM actions a WHERE a.message_id = m.id AND a.state IN ('executing', 'completed')) AS touched
FROM messages m WHERE m.sender_doubt IS NULL AND m.id IN (
    SELECT id FROM (SELECT id FROM messages WHERE account_id = :account_id AND sender {= ANY(:senders::text[])}
        AND sent_at >= :since ORDER BY sent_at DESC LIMIT :most) AS s
    UNION SELECT id FROM (SELECT id FROM messages WHERE account_id = :account_id AND {sender_domain} {= ANY(:domains::text[])}
        AND sent_at >= :since ORDER BY sent_at DESC LIMIT :most) AS d
    UNION SELECT id FROM (SELECT id FROM messages WHERE account_id = :account_id AND list_id {= ANY(:lists::text[])}
        AND list_id <> '' AND sent_at >= :since ORDER BY sent_at DESC LIMIT :most) AS l)
