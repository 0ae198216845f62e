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
