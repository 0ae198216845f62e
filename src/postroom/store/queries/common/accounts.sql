-- part: account_views
SELECT a.id, a.provider, a.endpoint_identity, a.email, a.state, a.state_reason, a.created_at, a.updated_at, a.acts_from,
    c.client_id, c.level, c.scopes_json, c.granted_at, c.refreshed_at, c.dies_at,
    s.imap_host, s.imap_port, s.imap_security, s.smtp_host, s.smtp_port, s.smtp_security, s.user_name, s.sign_in,
    s.labels_as, s.files_sent_mail, s.given_at, s.trusted_certificates, s.authserv_ids
FROM accounts a LEFT JOIN consents c ON c.account_id = a.id LEFT JOIN mail_servers s ON s.account_id = a.id

-- name: select_account_views()
{account_views} ORDER BY a.created_at, a.id

-- name: select_account_view(id)
{account_views} WHERE a.id = :id

-- name: select_account_at(endpoint_identity)
{account_views} WHERE a.endpoint_identity = :endpoint_identity

-- name: set_acts_from(id, acts_from, now)
UPDATE accounts SET acts_from = :acts_from, updated_at = :now WHERE id = :id

-- name: set_account_state(id, state, reason, now)
UPDATE accounts SET state = :state, state_reason = :reason, updated_at = :now WHERE id = :id

-- name: upsert_consent(account_id, client_id, level, scopes_json, granted_at, dies_at)
INSERT INTO consents (account_id, client_id, level, scopes_json, granted_at, dies_at)
VALUES (:account_id, :client_id, :level, :scopes_json, :granted_at, :dies_at)
ON CONFLICT (account_id) DO UPDATE SET client_id = excluded.client_id, level = excluded.level,
    scopes_json = excluded.scopes_json, granted_at = excluded.granted_at, refreshed_at = NULL, dies_at = excluded.dies_at

-- name: note_refresh(account_id, granted_at, now)
UPDATE consents SET refreshed_at = :now WHERE account_id = :account_id AND granted_at = :granted_at RETURNING account_id

-- name: delete_consent(account_id)
DELETE FROM consents WHERE account_id = :account_id

-- name: upsert_mail_servers(account_id, imap_host, imap_port, imap_security, smtp_host, smtp_port, smtp_security, user_name, sign_in, labels_as, files_sent_mail, given_at, trusted_certificates, authserv_ids)
INSERT INTO mail_servers (account_id, imap_host, imap_port, imap_security, smtp_host, smtp_port, smtp_security, user_name,
    sign_in, labels_as, files_sent_mail, given_at, trusted_certificates, authserv_ids)
VALUES (:account_id, :imap_host, :imap_port, :imap_security, :smtp_host, :smtp_port, :smtp_security, :user_name,
    :sign_in, :labels_as, :files_sent_mail, :given_at, :trusted_certificates, :authserv_ids)
ON CONFLICT (account_id) DO UPDATE SET imap_host = excluded.imap_host, imap_port = excluded.imap_port,
    imap_security = excluded.imap_security, smtp_host = excluded.smtp_host, smtp_port = excluded.smtp_port,
    smtp_security = excluded.smtp_security, user_name = excluded.user_name, sign_in = excluded.sign_in,
    labels_as = excluded.labels_as, files_sent_mail = excluded.files_sent_mail, given_at = excluded.given_at,
    trusted_certificates = excluded.trusted_certificates, authserv_ids = excluded.authserv_ids

-- name: delete_mail_servers(account_id)
DELETE FROM mail_servers WHERE account_id = :account_id

-- name: upsert_credential(account_id, field, key_id, sealed, now)
INSERT INTO credentials (account_id, field, key_id, sealed, updated_at)
VALUES (:account_id, :field, :key_id, :sealed, :now)
ON CONFLICT (account_id, field) DO UPDATE
SET key_id = excluded.key_id, sealed = excluded.sealed, updated_at = excluded.updated_at

-- name: replace_credential(account_id, field, old_sealed, key_id, sealed, now)
UPDATE credentials SET key_id = :key_id, sealed = :sealed, updated_at = :now
WHERE account_id = :account_id AND field = :field AND sealed = :old_sealed RETURNING field;
UPDATE dkim_keys SET key_id = :key_id, sealed = :sealed
WHERE id = :account_id AND CAST(:field AS text) = 'dkim' AND sealed = :old_sealed RETURNING selector;
UPDATE people SET totp_key_id = :key_id, totp_sealed = :sealed
WHERE id = :account_id AND CAST(:field AS text) = 'totp' AND totp_sealed = :old_sealed RETURNING name

-- name: select_credential(account_id, field)
SELECT key_id, sealed AS text FROM credentials WHERE account_id = :account_id AND field = :field

-- name: delete_credentials(account_id)
DELETE FROM credentials WHERE account_id = :account_id

-- name: select_credentials_after(key_id, account_id, field, most)
-- Secrets sealed by another key, in the order of the primary key. A DKIM key stands on its own, under its id, and the
-- secret of a person's codes under theirs.
SELECT account_id, field, key_id, sealed AS text FROM (
    SELECT account_id, field, key_id, sealed FROM credentials UNION ALL SELECT id, 'dkim', key_id, sealed FROM dkim_keys
    UNION ALL SELECT id, 'totp', totp_key_id, totp_sealed FROM people WHERE totp_sealed IS NOT NULL
) AS secrets
WHERE key_id <> :key_id AND (account_id, field) > (:account_id, :field)
ORDER BY account_id, field LIMIT :most

-- name: insert_secret_key(id, now)
INSERT INTO secret_keys (id, first_used_at) VALUES (:id, :now) ON CONFLICT (id) DO NOTHING

-- name: select_secret_keys()
SELECT k.id, k.first_used_at, k.dropped_at, (SELECT count(*) FROM credentials c WHERE c.key_id = k.id)
    + (SELECT count(*) FROM dkim_keys d WHERE d.key_id = k.id)
    + (SELECT count(*) FROM people p WHERE p.totp_key_id = k.id) AS secrets
FROM secret_keys k ORDER BY k.first_used_at DESC, k.id

-- name: count_credentials_under(key_id)
SELECT (SELECT count(*) FROM credentials WHERE key_id = :key_id) + (SELECT count(*) FROM dkim_keys WHERE key_id = :key_id)
    + (SELECT count(*) FROM people WHERE totp_key_id = :key_id)

-- name: drop_secret_key(id, now)
UPDATE secret_keys SET dropped_at = :now WHERE id = :id AND dropped_at IS NULL RETURNING id

-- name: lock_account(id)
SELECT state, state_reason FROM accounts WHERE id = :id {FOR UPDATE}

-- name: lock_parking(key)
-- Making the account usable again, and then releasing its jobs, waits until this job is parked under the key.
SELECT state FROM accounts WHERE 'account:' || id{::text} = :key {FOR SHARE}

-- name: share_secret_key(id)
-- Dropping the key waits until what it has sealed is visible.
SELECT dropped_at FROM secret_keys WHERE id = :id {FOR SHARE}

-- name: lock_secret_key(id)
SELECT dropped_at FROM secret_keys WHERE id = :id {FOR UPDATE}

-- name: lock_connecting()
-- Held to the end of the transaction. The number only has to differ from that of the migrations.
SELECT 1 {FROM pg_advisory_xact_lock(7305418627335)}
