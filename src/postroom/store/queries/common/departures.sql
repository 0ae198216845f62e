-- name: raise_pause_generation()
INSERT INTO pause_generation (id, generation) VALUES (1, 1)
ON CONFLICT (id) DO UPDATE SET generation = pause_generation.generation + 1 RETURNING generation

-- name: select_pause_generation()
SELECT generation FROM pause_generation WHERE id = 1

-- name: upsert_departures(process_id, holder, generation, on_wire, now)
INSERT INTO departures (process_id, holder, generation, on_wire_json, renewed_at)
VALUES (:process_id, :holder, :generation, :on_wire, :now)
ON CONFLICT (process_id) DO UPDATE SET generation = excluded.generation, on_wire_json = excluded.on_wire_json,
    renewed_at = excluded.renewed_at

-- name: delete_departures(process_id)
DELETE FROM departures WHERE process_id = :process_id

-- name: delete_silent_departures(generation)
DELETE FROM departures WHERE generation < :generation RETURNING process_id

-- name: select_departures()
SELECT process_id, generation, on_wire_json FROM departures

-- name: count_leaving_mails()
SELECT count(*) FROM outbound_mail m
WHERE m.state = 'sending' AND EXISTS (SELECT 1 FROM outbound_recipients r WHERE r.mail_id = m.id AND r.leaving_at IS NOT NULL)

-- name: insert_protected_label(value, account_id, provider_label_id)
INSERT INTO protected_labels (value, account_id, provider_label_id) VALUES (:value, :account_id, :provider_label_id)
ON CONFLICT DO NOTHING

-- name: delete_protected_labels(value)
DELETE FROM protected_labels WHERE value = :value

-- name: select_protected_labels()
SELECT value, account_id, provider_label_id FROM protected_labels ORDER BY value, provider_label_id

-- name: select_waiting_actions(scope)
-- Actions that are to be done, by what they do and who asked for them: those of one account, or all.
SELECT a.action_type AS kind, a.actor, t.name AS agent, CAST(count(*) AS bigint) AS number
FROM actions a LEFT JOIN tokens t ON a.actor = 'agent' AND a.asked_by = 'token:' || CAST(t.id AS text)
WHERE a.state IN ('queued', 'executing') AND (:scope = 'all' OR CAST(a.account_id AS text) = :scope)
GROUP BY a.action_type, a.actor, t.name ORDER BY number DESC, kind, a.actor, t.name

-- name: select_waiting_jobs(key)
-- Other jobs than those of actions that wait for the end of a pause.
SELECT j.type AS kind, CAST(count(*) AS bigint) AS number FROM jobs j
WHERE j.parked_by = :key AND j.state = 'queued' AND j.type NOT IN ('action.gmail', 'outbound.send')
GROUP BY j.type ORDER BY number DESC, kind

-- name: count_waiting_mails()
-- Outgoing mail that no action is about: that of senders.
SELECT CAST(count(*) AS bigint) FROM outbound_mail WHERE state IN ('queued', 'deferred') AND action_id IS NULL

-- name: await_no_pause()
-- Held to the end of the transaction: a pause comes before or after this one, and neither misses the other.
SELECT 1 {FROM pg_advisory_xact_lock_shared(7305418627336)}

-- name: await_no_departure()
SELECT 1 {FROM pg_advisory_xact_lock(7305418627336)}

-- name: select_departing(rows)
SELECT c.state AS account_state, c.provider, c.email, c.state_reason, COALESCE(j.cancel_requested, o.cancel_requested) AS cancel_requested, j.seq AS job_seq, o.id AS delivery_id,
    a.state AS action_state, a.approved_by, a.action_hash, a.action_type, a.parameters_json, m.id AS message_id,
    m.provider_message_id, m.sender, m.labels_json
FROM {jsonb_array_elements(:rows::jsonb)} AS e
LEFT JOIN accounts c ON c.id = (value ->> 1){::uuid}
LEFT JOIN {job_queue} j ON j.seq = (value ->> 2){::bigint} AND j.attempts = (value ->> 3){::integer}
    AND j.lease_token = (value ->> 4){::uuid} AND j.state = 'running'
LEFT JOIN outbound_mail o ON o.id = (value ->> 5){::uuid} AND o.lease_token = (value ->> 6){::uuid} AND o.state = 'sending'
LEFT JOIN actions a ON a.id = (value ->> 7){::uuid}
LEFT JOIN messages m ON m.id = a.message_id
ORDER BY (value ->> 0){::integer}
