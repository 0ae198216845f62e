-- name: insert_session(id, person_id, key_sha256, secret_sha256, browser, address, idle_ends_at, ends_at, now)
INSERT INTO sessions (id, person_id, key_sha256, secret_sha256, browser, address, created_at, last_seen_at, rotated_at,
    proven_at, idle_ends_at, ends_at)
VALUES (:id, :person_id, :key_sha256, :secret_sha256, :browser, :address, :now, :now, :now, :now, :idle_ends_at, :ends_at)

-- name: select_session(key_sha256, now)
SELECT s.id, s.person_id, p.name, p.role, s.secret_sha256, s.previous_sha256, s.previous_until, s.created_at, s.last_seen_at,
    s.rotated_at, s.proven_at, s.ends_at
FROM sessions s JOIN people p ON p.id = s.person_id
WHERE s.key_sha256 = :key_sha256 AND s.idle_ends_at > :now AND s.ends_at > :now

-- name: select_sessions(name, now)
SELECT s.id, p.name, s.browser, s.address, s.created_at, s.last_seen_at, s.idle_ends_at, s.ends_at
FROM sessions s JOIN people p ON p.id = s.person_id
WHERE (CAST(:name AS text) IS NULL OR p.name = :name) AND s.idle_ends_at > :now AND s.ends_at > :now
ORDER BY s.last_seen_at DESC, s.id

-- name: note_session_use(id, idle_ends_at, now)
UPDATE sessions SET last_seen_at = :now, idle_ends_at = :idle_ends_at WHERE id = :id RETURNING id

-- name: rotate_session(id, seen_sha256, old_sha256, new_sha256, now)
-- Only who has the secret in use, or the one before while the new one has not been seen, gets another; and of many requests
-- that come with it at once, only one: the others saw a secret that is in use no more.
UPDATE sessions SET previous_sha256 = :old_sha256, previous_until = NULL, secret_sha256 = :new_sha256, rotated_at = :now
WHERE id = :id AND secret_sha256 = :seen_sha256
    AND (secret_sha256 = :old_sha256 OR (previous_sha256 = :old_sha256 AND previous_until IS NULL)) RETURNING id

-- name: end_previous_secret(id, secret_sha256, until)
UPDATE sessions SET previous_until = :until
WHERE id = :id AND secret_sha256 = :secret_sha256 AND previous_until IS NULL RETURNING id

-- name: prove_session(id, now)
UPDATE sessions SET proven_at = :now WHERE id = :id RETURNING id

-- name: age_sessions_of(person_id, rotated_at)
-- Their secrets are replaced at the next request.
UPDATE sessions SET rotated_at = :rotated_at WHERE person_id = :person_id

-- name: delete_session(id, person_id)
DELETE FROM sessions WHERE id = :id AND (CAST(:person_id AS text) IS NULL OR CAST(person_id AS text) = CAST(:person_id AS text))
RETURNING id

-- name: delete_sessions_of(person_id, but)
DELETE FROM sessions WHERE person_id = :person_id AND (CAST(:but AS text) IS NULL OR CAST(id AS text) <> CAST(:but AS text))
RETURNING id

-- name: delete_ended_sessions(now)
DELETE FROM sessions WHERE idle_ends_at <= :now OR ends_at <= :now

-- name: insert_challenge_key(secret, now)
INSERT INTO challenge_keys (only_one, secret, created_at) VALUES (1, :secret, :now) ON CONFLICT (only_one) DO NOTHING

-- name: select_challenge_key()
SELECT secret FROM challenge_keys

-- name: insert_used_challenge(challenge_sha256, expires_at)
INSERT INTO used_challenges (challenge_sha256, expires_at) VALUES (:challenge_sha256, :expires_at)
ON CONFLICT (challenge_sha256) DO NOTHING RETURNING challenge_sha256

-- name: delete_ended_challenges(now)
DELETE FROM used_challenges WHERE expires_at <= :now
