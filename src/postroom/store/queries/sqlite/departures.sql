-- name: select_departing(rows)
SELECT c.state AS account_state, c.provider, c.email, c.state_reason, COALESCE(j.cancel_requested, o.cancel_requested) AS cancel_requested, j.seq AS job_seq, o.id AS delivery_id,
    a.state AS action_state, a.approved_by, a.action_hash, a.action_type, a.parameters_json, m.id AS message_id,
    m.provider_message_id, m.sender, m.labels_json
FROM json_each(:rows) AS p
LEFT JOIN accounts c ON c.id = p.value ->> 0
LEFT JOIN job_rows j ON j.seq = p.value ->> 1 AND j.attempts = p.value ->> 2 AND j.lease_token = p.value ->> 3
    AND j.state = 'running'
LEFT JOIN outbound_mail o ON o.id = p.value ->> 4 AND o.lease_token = p.value ->> 5 AND o.state = 'sending'
LEFT JOIN actions a ON a.id = p.value ->> 6
LEFT JOIN messages m ON m.id = a.message_id
ORDER BY p.key
