-- name: insert_account(id, provider, endpoint_identity, email, now)
INSERT INTO accounts (id, provider, endpoint_identity, email, state, created_at, updated_at)
VALUES (:id, :provider, :endpoint_identity, :email, 'active', :now, :now)
ON CONFLICT (endpoint_identity) DO NOTHING

-- name: select_account(endpoint_identity)
SELECT id, provider, endpoint_identity, email, state FROM accounts WHERE endpoint_identity = :endpoint_identity

-- name: upsert_thread(id, account_id, provider_thread_id, subject, sent_at, now)
INSERT INTO threads (id, account_id, provider_thread_id, subject, last_message_at, created_at, updated_at)
VALUES (:id, :account_id, :provider_thread_id, :subject, :sent_at, :now, :now)
ON CONFLICT (account_id, provider_thread_id) DO UPDATE
SET updated_at = excluded.updated_at,
    last_message_at = CASE WHEN excluded.last_message_at > threads.last_message_at
        THEN excluded.last_message_at ELSE threads.last_message_at END
RETURNING id

-- name: insert_message(id, account_id, thread_id, inbox_id, provider_message_id, ingestion_tier, policy_tier, sender, subject, headers_json, labels_json, snippet, body_text, has_attachment, sent_at, now)
INSERT INTO messages (id, account_id, thread_id, inbox_id, provider_message_id, ingestion_tier, policy_tier, sender,
    subject, headers_json, labels_json, snippet, body_text, has_attachment, sent_at, created_at, updated_at)
VALUES (:id, :account_id, :thread_id, :inbox_id, :provider_message_id, :ingestion_tier, :policy_tier, :sender,
    :subject, :headers_json, :labels_json, :snippet, :body_text, :has_attachment, :sent_at, :now, :now)
-- A full copy takes the place of what was known by its metadata only.
ON CONFLICT (account_id, provider_message_id) DO UPDATE
SET ingestion_tier = excluded.ingestion_tier, policy_tier = excluded.policy_tier,
    sender = excluded.sender, subject = excluded.subject, headers_json = excluded.headers_json,
    labels_json = excluded.labels_json, snippet = excluded.snippet, body_text = excluded.body_text,
    has_attachment = excluded.has_attachment, sent_at = excluded.sent_at, updated_at = excluded.updated_at
WHERE messages.ingestion_tier = 'metadata' AND excluded.ingestion_tier = 'full'
RETURNING id

-- name: select_message(id)
SELECT id, account_id, provider_message_id, sender, subject, headers_json, labels_json, body_text, has_attachment
FROM messages WHERE id = :id

-- name: update_message_labels(id, labels_json, now)
UPDATE messages SET labels_json = :labels_json, updated_at = :now WHERE id = :id

-- name: mark_message_deleted(id, now)
UPDATE messages SET deleted_at = :now, updated_at = :now WHERE id = :id AND deleted_at IS NULL

-- name: insert_rule(id, name, description, scope, scope_ref, priority, conditions_json, action_type, parameters_json, origin, now)
INSERT INTO rules (id, name, description, scope, scope_ref, priority, conditions_json, action_type, parameters_json,
    origin, created_at, updated_at)
VALUES (:id, :name, :description, :scope, :scope_ref, :priority, :conditions_json, :action_type, :parameters_json,
    :origin, :now, :now)
ON CONFLICT (name) DO NOTHING RETURNING id

-- name: select_enabled_rules()
SELECT id, name, scope, scope_ref, priority, conditions_json, action_type, parameters_json, mode, needs_approval
FROM rules WHERE enabled ORDER BY priority, id

-- name: select_rules()
SELECT id, name, description, scope, scope_ref, priority, conditions_json, action_type, parameters_json, mode, enabled,
    disabled_reason
FROM rules ORDER BY priority, id

-- name: disable_rule(id, reason, disabled, now)
UPDATE rules SET enabled = :disabled, disabled_reason = :reason, version = version + 1, updated_at = :now
WHERE id = :id AND enabled

-- name: insert_decision(id, account_id, message_id, generation, source, rule_id, rule_name, action_type, parameters_json, confidence, needs_approval, rationale, safety_json, now)
INSERT INTO decisions (id, account_id, message_id, generation, source, rule_id, rule_name, action_type,
    parameters_json, confidence, needs_approval, rationale, safety_json, created_at)
VALUES (:id, :account_id, :message_id, :generation, :source, :rule_id, :rule_name, :action_type,
    :parameters_json, :confidence, :needs_approval, :rationale, :safety_json, :now)

-- name: insert_action(id, account_id, message_id, decision_id, actor, action_type, parameters_json, state, action_hash, job_id, now)
INSERT INTO actions (id, account_id, message_id, decision_id, actor, action_type, parameters_json, state, action_hash,
    job_id, created_at, updated_at)
VALUES (:id, :account_id, :message_id, :decision_id, :actor, :action_type, :parameters_json, :state, :action_hash,
    :job_id, :now, :now)

-- name: select_action(id)
SELECT a.id, a.account_id, a.message_id, m.provider_message_id, a.action_type, a.parameters_json, a.state,
    a.pre_image_json
FROM actions a JOIN messages m ON m.id = a.message_id WHERE a.id = :id

-- name: begin_action(id, job_id, now)
-- A retry of the job goes on with its own action, also after it had failed and the user asked for another try.
UPDATE actions SET state = 'executing', error = NULL, updated_at = :now
WHERE id = :id AND job_id = :job_id AND state IN ('queued', 'executing', 'failed', 'canceled') RETURNING id

-- name: set_pre_image(id, pre_image_json, now)
UPDATE actions SET pre_image_json = :pre_image_json, updated_at = :now
WHERE id = :id AND state = 'executing' AND pre_image_json IS NULL

-- name: complete_action(id, undo_hint_json, now)
UPDATE actions SET state = 'completed', undo_hint_json = :undo_hint_json, executed_at = :now, updated_at = :now
WHERE id = :id AND state = 'executing' RETURNING message_id

-- name: fail_action(id, error, now)
UPDATE actions SET state = 'failed', error = :error, updated_at = :now
WHERE id = :id AND state IN ('queued', 'executing') RETURNING id

-- name: select_feed(most)
SELECT i.id, i.seq, i.accepted_at, i.tier, i.sender, m.subject,
    CASE WHEN m.id IS NULL THEN i.envelope_json END, i.state, i.reason,
    d.action_type, d.parameters_json, d.source, d.rule_name, d.rationale, a.state, a.error
FROM (SELECT * FROM inbox WHERE queue = 'email' AND copy_of IS NULL
    ORDER BY accepted_at DESC, seq DESC LIMIT :most) AS i
LEFT JOIN messages m ON m.inbox_id = i.id
LEFT JOIN decisions d ON d.message_id = m.id AND NOT d.shadow
    AND d.generation = (SELECT max(generation) FROM decisions WHERE message_id = m.id AND NOT shadow)
LEFT JOIN actions a ON a.decision_id = d.id
ORDER BY i.seq DESC

-- name: count_decisions()
SELECT count(*) FROM decisions WHERE NOT shadow

-- name: count_actions()
SELECT state, count(*) FROM actions GROUP BY state
