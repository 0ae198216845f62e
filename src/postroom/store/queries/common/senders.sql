-- name: insert_tenant(name, weight, now)
INSERT INTO tenants (name, weight, created_at, updated_at) VALUES (:name, :weight, :now, :now)
ON CONFLICT (name) DO NOTHING RETURNING id

-- name: select_tenants(name)
SELECT t.id, t.name, t.weight, t.state, t.state_reason, t.created_at, t.updated_at,
    (SELECT count(*) FROM senders s JOIN sender_domains d ON d.id = s.domain_id WHERE d.tenant_id = t.id) AS senders
FROM tenants t WHERE CAST(:name AS text) IS NULL OR t.name = :name ORDER BY t.name

-- name: select_tenant_domains(name)
SELECT d.tenant_id, d.name FROM sender_domains d JOIN tenants t ON t.id = d.tenant_id
WHERE CAST(:name AS text) IS NULL OR t.name = :name ORDER BY d.name

-- name: move_tenant(id, state, state_reason, now)
UPDATE tenants SET state = :state, state_reason = :state_reason, updated_at = :now WHERE id = :id

-- name: weigh_tenant(id, weight, now)
UPDATE tenants SET weight = :weight, updated_at = :now WHERE id = :id

-- name: insert_sender_domain(tenant_id, name, now)
INSERT INTO sender_domains (tenant_id, name, created_at) VALUES (:tenant_id, :name, :now)
ON CONFLICT (name) DO NOTHING RETURNING id

-- name: select_sender_domain(name)
SELECT d.id, t.name AS tenant FROM sender_domains d JOIN tenants t ON t.id = d.tenant_id WHERE d.name = :name

-- name: insert_sender(domain_id, username, addresses_json, password_hash, plan, weight, daily_limit, since, now)
INSERT INTO senders (domain_id, username, addresses_json, password_hash, plan, weight, daily_limit, created_at, updated_at)
VALUES (:domain_id, :username, :addresses_json, :password_hash, :plan, :weight, :daily_limit, :since, :now)
ON CONFLICT (username) DO NOTHING RETURNING id

-- name: select_sender(id, username)
SELECT s.id, s.domain_id, d.tenant_id, s.username, s.plan, s.state, s.weight, d.weight AS domain_weight,
    t.weight AS tenant_weight, d.name AS domain, t.name AS tenant, t.state AS tenant_state, s.created_at, s.throttled_until AS until,
    s.throttle_reason AS reason
FROM senders s JOIN sender_domains d ON d.id = s.domain_id JOIN tenants t ON t.id = d.tenant_id
WHERE s.id = COALESCE(:id, (SELECT id FROM senders WHERE username = :username))

-- name: select_senders(username, tenant, throttled, day, most)
SELECT s.id, s.username, d.name AS domain, t.name AS tenant, s.addresses_json, s.plan, s.weight, s.state, s.state_reason,
    s.daily_limit, COALESCE(a.accepted, 0) AS accepted_today, s.abuse_score, s.throttled_until, s.throttle_reason,
    s.password_hash IS NOT NULL AS has_password, s.created_at, s.updated_at
FROM senders s JOIN sender_domains d ON d.id = s.domain_id JOIN tenants t ON t.id = d.tenant_id
    LEFT JOIN accepted_days a ON a.level = 'sender' AND a.node_id = s.id AND a.day = :day
WHERE (CAST(:username AS text) IS NULL OR s.username = :username) AND (CAST(:tenant AS text) IS NULL OR t.name = :tenant)
    AND (s.throttled_until IS NOT NULL OR NOT CAST(:throttled AS boolean))
ORDER BY t.name, d.name, s.username LIMIT :most

-- part: logins
SELECT s.id, s.username, s.password_hash, s.state, s.addresses_json, s.daily_limit, d.name AS domain, t.name AS tenant
FROM senders s JOIN sender_domains d ON d.id = s.domain_id JOIN tenants t ON t.id = d.tenant_id

-- name: select_login(username)
{logins} WHERE s.username = :username

-- name: select_login_by_id(id)
{logins} WHERE s.id = :id

-- name: set_password(id, password_hash, now)
UPDATE senders SET password_hash = :password_hash, updated_at = :now WHERE id = :id

-- name: move_sender(id, state, state_reason, now)
UPDATE senders SET state = :state, state_reason = :state_reason, updated_at = :now WHERE id = :id

-- name: set_throttle(id, throttled_until, throttle_reason, now)
UPDATE senders SET throttled_until = :throttled_until, throttle_reason = :throttle_reason, updated_at = :now WHERE id = :id

-- name: forgive_sender(id, counted_from)
UPDATE senders SET abuse_score = 0, counted_from = :counted_from WHERE id = :id

-- name: upsert_throttle(sender_id, started_by, score, reason, active_since, until, now)
-- One that stands is changed: a sender has at most one.
INSERT INTO sender_throttles (sender_id, started_by, score, reason, active_since, started_at, until)
VALUES (:sender_id, :started_by, :score, :reason, :active_since, :now, :until)
ON CONFLICT (sender_id) WHERE ended_at IS NULL DO UPDATE SET until = excluded.until, reason = excluded.reason

-- name: end_throttle(sender_id, ended_by, now)
UPDATE sender_throttles SET ended_at = :now, ended_by = :ended_by WHERE sender_id = :sender_id AND ended_at IS NULL

-- name: select_admission(id)
SELECT s.username, s.state, s.state_reason, s.daily_limit, s.throttled_until AS until, s.throttle_reason AS reason,
    s.first_accepted_at, d.id AS domain_id, d.name AS domain, d.daily_limit AS domain_limit, t.name AS tenant,
    t.state AS tenant_state, t.state_reason AS tenant_reason
FROM senders s JOIN sender_domains d ON d.id = s.domain_id JOIN tenants t ON t.id = d.tenant_id WHERE s.id = :id

-- name: count_accepted_day(level, node_id, day, accepted, most)
-- Counts, unless the day would then have more than are allowed.
INSERT INTO accepted_days (level, node_id, day, accepted)
SELECT CAST(:level AS text), CAST(:node_id AS bigint), CAST(:day AS text), CAST(:accepted AS bigint)
WHERE CAST(:accepted AS bigint) <= CAST(:most AS bigint)
ON CONFLICT (level, node_id, day) DO UPDATE SET accepted = accepted_days.accepted + excluded.accepted
    WHERE accepted_days.accepted + excluded.accepted <= CAST(:most AS bigint)
RETURNING accepted

-- name: note_first_accepted(id, now)
UPDATE senders SET first_accepted_at = :now WHERE id = :id AND first_accepted_at IS NULL

-- name: select_scored_senders(window_start, active, first_day, window_day, after_id, most)
-- Those with counts since `active`, and those whose score or throttle may have to fall. The sums keep the databases from
-- reading the hours of every sender in their order: only those of the last hours matter.
WITH chosen AS (
    SELECT sender_id + 0 AS id FROM sender_hours WHERE hour >= :active AND sender_id + 0 > :after_id
    UNION SELECT id FROM senders WHERE (abuse_score > 0 OR throttled_until IS NOT NULL) AND id > :after_id
    ORDER BY id LIMIT :most
)
SELECT s.id, s.username, t.name AS tenant, s.abuse_score, s.created_at, s.throttled_until AS until,
    s.throttle_reason AS reason, s.first_accepted_at, c.accepted, c.delivered, c.bounced, c.rejected, c.active_since, c.failing_since,
    CAST((SELECT COALESCE(sum(a.accepted), 0) FROM accepted_days a
        WHERE a.level = 'sender' AND a.node_id = s.id AND a.day >= :first_day AND a.day < :window_day) AS bigint) AS history
FROM senders s JOIN sender_domains d ON d.id = s.domain_id JOIN tenants t ON t.id = d.tenant_id JOIN (
    SELECT chosen.id, CAST(COALESCE(sum(h.accepted), 0) AS bigint) AS accepted,
        CAST(COALESCE(sum(h.delivered), 0) AS bigint) AS delivered, CAST(COALESCE(sum(h.bounced), 0) AS bigint) AS bounced,
        CAST(COALESCE(sum(h.rejected), 0) AS bigint) AS rejected, min(COALESCE(h.first_at, h.hour)) AS active_since,
        min(COALESCE(h.first_bad_at, CASE WHEN h.first_at IS NULL AND h.bounced + h.rejected > 0 THEN h.hour END)) AS failing_since
    FROM chosen JOIN senders x ON x.id = chosen.id LEFT JOIN sender_hours h ON h.sender_id = x.id AND h.hour > :window_start
        AND (x.counted_from IS NULL OR h.hour >= x.counted_from)
    GROUP BY chosen.id
) c ON c.id = s.id
ORDER BY s.id

-- name: select_throttle_figures(since, now)
SELECT (SELECT count(*) FROM senders WHERE throttled_until > :now) AS waiting,
    (SELECT count(*) FROM senders WHERE throttled_until <= :now) AS draining,
    count(*) AS throttled,
    CAST(COALESCE(sum(CASE WHEN ended_by = 'person' THEN 1 ELSE 0 END), 0) AS bigint) AS released_by_hand
FROM sender_throttles WHERE started_by = 'score' AND started_at >= :since

-- name: select_detections(since, most)
SELECT active_since, started_at FROM sender_throttles
WHERE started_by = 'score' AND active_since IS NOT NULL AND started_at >= :since ORDER BY started_at DESC LIMIT :most

-- name: prune_sender_counts(hour, day)
DELETE FROM sender_hours WHERE hour < :hour;
DELETE FROM accepted_days WHERE day < :day

-- name: select_ended_holds(most, now)
SELECT s.id FROM senders s WHERE s.throttled_until <= :now AND s.queue_held AND s.state = 'active' ORDER BY s.id LIMIT :most

-- name: lock_sender(id)
SELECT id FROM senders WHERE id = :id {FOR NO KEY UPDATE}

-- name: lock_tenant(name)
SELECT id FROM tenants WHERE name = :name {FOR NO KEY UPDATE}

-- name: add_sender_hours(rows, hour, now)
INSERT INTO sender_hours (sender_id, hour, accepted, delivered, bounced, rejected, first_at, first_bad_at)
SELECT (value ->> 0){::bigint}, :hour, (value ->> 1){::bigint}, (value ->> 2){::bigint}, (value ->> 3){::bigint}, (value ->> 4){::bigint}, :now,
    CASE WHEN (value ->> 3){::bigint} + (value ->> 4){::bigint} > 0 THEN :now{::timestamptz} END
FROM {jsonb_array_elements(:rows::jsonb)} AS e WHERE true
ON CONFLICT (sender_id, hour) DO UPDATE SET accepted = sender_hours.accepted + excluded.accepted,
    delivered = sender_hours.delivered + excluded.delivered, bounced = sender_hours.bounced + excluded.bounced,
    rejected = sender_hours.rejected + excluded.rejected,
    first_bad_at = COALESCE(sender_hours.first_bad_at, excluded.first_bad_at)

-- name: record_scores(rows)
UPDATE senders SET abuse_score = (value ->> 1){::integer} FROM {jsonb_array_elements(:rows::jsonb)} AS e
WHERE senders.id = (value ->> 0){::bigint}
