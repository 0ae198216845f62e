-- name: insert_account(id, provider, endpoint_identity, email, acts_from, now)
INSERT INTO accounts (id, provider, endpoint_identity, email, state, acts_from, created_at, updated_at)
VALUES (:id, :provider, :endpoint_identity, :email, 'active', :acts_from, :now, :now)
ON CONFLICT (endpoint_identity) DO NOTHING RETURNING id

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

-- name: insert_message(id, account_id, thread_id, inbox_id, provider_message_id, ingestion_tier, policy_tier, sender, subject, headers_json, labels_json, snippet, body_text, has_attachment, sent_at, list_id, size, attachments_json, reply_to_mine, sender_doubt, is_on_demand, now)
INSERT INTO messages (id, account_id, thread_id, inbox_id, provider_message_id, ingestion_tier, policy_tier, sender,
    subject, headers_json, labels_json, snippet, body_text, has_attachment, sent_at, created_at, updated_at,
    arrival_labels_json, list_id, size_bytes, attachments_json, reply_to_mine, sender_doubt, on_demand, accepted_seq)
VALUES (:id, :account_id, :thread_id, :inbox_id, :provider_message_id, :ingestion_tier, :policy_tier, :sender,
    :subject, :headers_json, :labels_json, :snippet, :body_text, :has_attachment, :sent_at, :now, :now,
    :labels_json, :list_id, :size, :attachments_json, :reply_to_mine, :sender_doubt, :is_on_demand, COALESCE((SELECT e.seq FROM envelopes e WHERE e.id = :inbox_id), 0))
-- A full copy replaces what was stored as metadata only.
ON CONFLICT (account_id, provider_message_id) DO UPDATE
SET ingestion_tier = excluded.ingestion_tier, policy_tier = excluded.policy_tier,
    sender = excluded.sender, subject = excluded.subject, headers_json = excluded.headers_json,
    labels_json = excluded.labels_json, snippet = excluded.snippet, body_text = excluded.body_text,
    has_attachment = excluded.has_attachment, sent_at = excluded.sent_at, updated_at = excluded.updated_at,
    arrival_labels_json = excluded.arrival_labels_json, list_id = excluded.list_id,
    size_bytes = excluded.size_bytes, attachments_json = excluded.attachments_json, reply_to_mine = excluded.reply_to_mine,
    sender_doubt = excluded.sender_doubt
WHERE messages.ingestion_tier = 'metadata' AND excluded.ingestion_tier = 'full' AND messages.pruned_at IS NULL
RETURNING id

-- name: select_message_id(account_id, gmail_id)
SELECT id FROM messages WHERE account_id = :account_id AND provider_message_id = :gmail_id

-- name: select_last_provider_id(account_id)
SELECT max(provider_message_id) FROM messages WHERE account_id = :account_id

-- name: select_sender_and_labels(id)
SELECT account_id, sender, labels_json FROM messages WHERE id = :id

-- name: select_policy_tier(id)
SELECT policy_tier FROM messages WHERE id = :id

-- name: select_message(id)
SELECT m.id, m.account_id, m.provider_message_id, m.sender, m.subject, m.headers_json, m.labels_json, m.body_text,
    m.has_attachment, m.ingestion_tier, m.policy_tier, m.created_at AS stored_at, m.sent_at, m.deleted_at IS NOT NULL AS is_gone, t.provider_thread_id,
    a.email AS account_email, m.sender_doubt, m.on_demand, m.size_bytes AS size, m.attachments_json, m.reply_to_mine,
    (SELECT COALESCE('["' || string_agg(c.category, '","') || '"]', '[]') FROM message_categories c
        WHERE c.message_id = m.id) AS categories_json,
    m.sender_doubt IS NULL AND EXISTS (SELECT 1 FROM contacts k
        WHERE k.address = m.sender AND k.endpoint_identity IN ('', a.endpoint_identity)) AS sender_in_contacts,
    EXISTS (SELECT 1 FROM messages o WHERE o.account_id = m.account_id AND o.sender = m.sender
        AND (o.accepted_seq, o.id) < (m.accepted_seq, m.id)) AS sender_seen_before,
    (SELECT b.job_id FROM backfill_mail b WHERE b.message_id = m.id ORDER BY b.inbox_id DESC LIMIT 1) AS backfill_job_id,
    NOT m.on_demand AND m.pruned_at IS NULL AND COALESCE((SELECT r.acts FROM backfill_mail b
        JOIN backfill_runs r ON r.job_id = b.job_id WHERE b.message_id = m.id ORDER BY b.inbox_id DESC LIMIT 1),
        COALESCE(m.sent_at >= a.acts_from, false)) AS may_act,
    EXISTS (SELECT 1 FROM actions s WHERE s.message_id = m.id AND s.actor IN ('model', 'agent') AND s.approved_at IS NULL
        AND (s.pre_image_json ->> 'snooze_until' IS NOT NULL OR (s.state IN ('queued', 'executing')
            AND (s.action_type = 'snooze' OR (s.action_type = 'several'
                AND CAST(s.parameters_json AS text) LIKE '%"snooze"%'))))) AS was_snoozed
FROM messages m JOIN threads t ON t.id = m.thread_id JOIN accounts a ON a.id = m.account_id WHERE m.id = :id

-- name: select_last_decision(message_id)
SELECT generation, source FROM decisions WHERE message_id = :message_id AND NOT shadow
ORDER BY generation DESC LIMIT 1

-- name: update_message_labels(id, labels_json, now)
-- For a message from before arrival labels were recorded, they are stored before they are lost.
UPDATE messages SET labels_json = :labels_json, updated_at = :now,
    arrival_labels_json = COALESCE(arrival_labels_json,
        (SELECT r.labels_json FROM arrivals r WHERE r.message_id = messages.id))
WHERE id = :id

-- name: move_message(id, provider_message_id, now)
-- If the message was stored under its new id meanwhile, that row keeps the id.
UPDATE messages SET provider_message_id = :provider_message_id, updated_at = :now
WHERE id = :id AND NOT EXISTS (SELECT 1 FROM messages o
    WHERE o.account_id = messages.account_id AND o.provider_message_id = :provider_message_id)

-- name: mark_message_deleted(id, now)
UPDATE messages SET deleted_at = :now, updated_at = :now WHERE id = :id AND deleted_at IS NULL
