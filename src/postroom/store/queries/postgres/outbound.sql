-- name: insert_outbound_mail(id, tenant, domain, username, sender_id, message_class, envelope_sender, kind, subject, account_id, thread_id, source_key, action_id, require_tls, smtputf8, body_8bit, envelope_id, return_full, message_id, ready, not_before, now)
INSERT INTO outbound_mail (id, tenant, domain, username, sender_id, message_class, envelope_sender, kind, subject, account_id,
    thread_id, source_key, action_id, require_tls, smtputf8, body_8bit, envelope_id, return_full, message_id, state, ready, not_before, asked_at, admitted_at, updated_at)
VALUES (:id, :tenant, :domain, :username, :sender_id, :message_class, :envelope_sender, :kind, :subject, :account_id,
    :thread_id, :source_key, :action_id, :require_tls, :smtputf8, :body_8bit, :envelope_id, :return_full, :message_id, 'queued', :ready, :not_before,
    COALESCE((SELECT created_at FROM actions WHERE id = :action_id), :now), GREATEST(:not_before, :now), :now)
RETURNING seq

-- name: select_outbound_mail(id, state, most)
SELECT m.id, m.account_id, m.username, a.email AS account, a.state AS account_state, m.action_id, m.kind, m.subject, m.state,
    m.not_before, d.draft_id, m.sent_message_id, m.error, m.asked_at AS created_at, m.updated_at, m.ended_at,
    (SELECT json_agg(r.address ORDER BY r.position) FROM outbound_recipients r WHERE r.mail_id = m.id) AS recipients_json,
    (SELECT max(r.attempts) FROM outbound_recipients r WHERE r.mail_id = m.id) AS attempts,
    (SELECT p.reason FROM pauses p WHERE p.scope IN ('all', CAST(m.account_id AS text)) ORDER BY p.scope DESC LIMIT 1) AS paused
FROM outbound_mail m LEFT JOIN accounts a ON a.id = m.account_id LEFT JOIN outbound_drafts d ON d.mail_id = m.id
WHERE (CAST(:id AS text) IS NULL OR CAST(m.id AS text) = CAST(:id AS text))
    AND (CAST(:state AS text) IS NULL OR m.state = :state)
ORDER BY m.asked_at DESC, m.id DESC LIMIT :most
