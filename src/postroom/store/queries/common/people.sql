-- name: insert_person(id, name, role, now)
INSERT INTO people (id, name, role, created_at, updated_at) VALUES (:id, :name, :role, :now, :now)
ON CONFLICT (name) DO NOTHING RETURNING id

-- name: count_people()
SELECT count(*) FROM people

-- name: select_people(now)
SELECT p.id, p.name, p.role, p.password_hash IS NOT NULL AS has_password, p.totp_sealed IS NOT NULL AS has_codes,
    (SELECT count(*) FROM passkeys k WHERE k.person_id = p.id) AS passkeys,
    (SELECT count(*) FROM sessions s WHERE s.person_id = p.id AND s.idle_ends_at > :now AND s.ends_at > :now) AS sessions,
    (SELECT max(s.last_seen_at) FROM sessions s WHERE s.person_id = p.id) AS last_seen_at, p.created_at
FROM people p ORDER BY p.name

-- name: select_person(id, name)
SELECT id, name, role, password_hash, totp_key_id AS key_id, totp_sealed AS text, totp_step FROM people
WHERE id = COALESCE(:id, (SELECT id FROM people WHERE name = :name))

-- name: lock_ways_in(id)
UPDATE people SET updated_at = updated_at WHERE id = :id RETURNING password_hash, totp_sealed IS NOT NULL AS has_codes

-- name: clear_person_password(id, now)
UPDATE people SET password_hash = NULL, updated_at = :now WHERE id = :id

-- name: lock_admins()
UPDATE people SET updated_at = updated_at WHERE role = 'admin' RETURNING id

-- name: set_person_role(id, role, now)
UPDATE people SET role = :role, updated_at = :now WHERE id = :id

-- name: set_person_password(id, password_hash, now)
UPDATE people SET password_hash = :password_hash, updated_at = :now WHERE id = :id

-- name: set_person_totp(id, key_id, sealed, step, now)
UPDATE people SET totp_key_id = :key_id, totp_sealed = :sealed, totp_step = :step, updated_at = :now WHERE id = :id

-- name: clear_person_totp(id, now)
UPDATE people SET totp_key_id = NULL, totp_sealed = NULL, totp_step = 0, updated_at = :now
WHERE id = :id AND totp_sealed IS NOT NULL RETURNING id

-- name: use_totp_step(id, step)
UPDATE people SET totp_step = :step WHERE id = :id AND totp_step < :step RETURNING id

-- name: delete_person(id)
DELETE FROM people WHERE id = :id

-- name: insert_passkey(id, person_id, credential_id, public_key, sign_count, host, name, now)
INSERT INTO passkeys (id, person_id, credential_id, public_key, sign_count, host, name, created_at)
VALUES (:id, :person_id, :credential_id, :public_key, :sign_count, :host, :name, :now)
ON CONFLICT (credential_id) DO NOTHING RETURNING id

-- name: select_passkeys(person_id)
SELECT id, person_id, credential_id, host, name, created_at, last_used_at FROM passkeys
WHERE person_id = :person_id ORDER BY created_at, id

-- name: select_passkey_by_credential(credential_id)
SELECT k.id, k.person_id, k.public_key, k.sign_count, p.name AS person, p.role FROM passkeys k JOIN people p ON p.id = k.person_id
WHERE k.credential_id = :credential_id

-- name: note_passkey_use(id, sign_count, now)
UPDATE passkeys SET sign_count = :sign_count, last_used_at = :now WHERE id = :id RETURNING id

-- name: delete_passkey(id, person_id)
DELETE FROM passkeys WHERE id = :id AND person_id = :person_id RETURNING name

-- name: insert_sign_in_link(id, person_id, secret_sha256, expires_at, now)
INSERT INTO sign_in_links (id, person_id, secret_sha256, created_at, expires_at)
VALUES (:id, :person_id, :secret_sha256, :now, :expires_at)

-- name: select_sign_in_link(secret_sha256, now)
SELECT l.id, l.person_id, p.name, p.role FROM sign_in_links l LEFT JOIN people p ON p.id = l.person_id
WHERE l.secret_sha256 = :secret_sha256 AND l.used_at IS NULL AND l.expires_at > :now

-- name: use_sign_in_link(secret_sha256, now)
UPDATE sign_in_links SET used_at = :now
WHERE secret_sha256 = :secret_sha256 AND used_at IS NULL AND expires_at > :now RETURNING id, person_id

-- name: delete_other_links(person_id, id)
-- Those of the same person, or of nobody yet.
DELETE FROM sign_in_links WHERE id <> :id AND COALESCE(CAST(person_id AS text), '') = COALESCE(CAST(:person_id AS text), '')

-- name: delete_ended_links(now)
DELETE FROM sign_in_links WHERE expires_at <= :now
