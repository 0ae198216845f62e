-- name: select_mail_in_states(states, before, most)
-- The states are those of the index; the newest of each are looked at.
SELECT m.id, m.seq, m.tenant, m.username, m.kind, m.subject, m.state, m.error, m.asked_at, m.updated_at,
    (SELECT r.address FROM outbound_recipients r WHERE r.mail_id = m.id AND r.position = 0) AS recipient,
    (SELECT count(*) FROM outbound_recipients r WHERE r.mail_id = m.id) AS recipients,
    COALESCE((SELECT max(r.attempts) FROM outbound_recipients r WHERE r.mail_id = m.id), 0) AS attempts
FROM json_each(:states) AS wanted JOIN outbound_mail m ON m.seq IN (
    SELECT o.seq FROM outbound_mail o WHERE o.state = wanted.value AND o.state IN ('deferred', 'unknown', 'partially_sent', 'bounced', 'rejected', 'expired', 'canceled')
        AND o.seq < :before ORDER BY o.seq DESC LIMIT :most
) ORDER BY m.seq DESC LIMIT :most
