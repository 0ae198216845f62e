-- part: evenness
SELECT hour, CAST(count(*) AS bigint) AS members, CAST(sum(recipients) AS bigint) AS served,
    sum((2 * place - members - 1) * part) / (count(*) * sum(part)) AS gini,
    sum(part) * sum(part) / (count(*) * sum(part * part)) AS jain
FROM (
    SELECT hour, recipients, part, row_number() OVER (PARTITION BY hour ORDER BY part) AS place,
        count(*) OVER (PARTITION BY hour) AS members
    FROM (
        SELECT v.hour, sum(v.recipients) AS recipients, CAST(sum(v.recipients) AS double precision) / t.weight AS part
        FROM outbound_service v JOIN senders s ON s.id = v.sender_id JOIN sender_domains d ON d.id = s.domain_id
            JOIN tenants t ON t.id = d.tenant_id
        WHERE v.hour >= :since AND v.hour < :until AND v.recipients > 0 GROUP BY v.hour, t.id, t.weight
    ) AS served
) AS ranked
GROUP BY hour ORDER BY hour

-- name: select_evenness_hours(since, until)
-- Gini and Jain as in core/outbound/fairness.py: of the recipients of each tenant in an hour, divided by its weight.
{evenness}

-- name: fold_evenness(since, until)
INSERT INTO outbound_evenness (hour, members, served, gini, jain)
{evenness}

-- name: select_waiting_tenants()
-- As select_waiting_lanes, by tenant, and with what is held back.
SELECT d.tenant_id, CAST(sum(t.waiting) AS bigint) AS waiting,
    CAST(sum(CASE WHEN t.held OR n.state = 'paused' THEN t.waiting ELSE 0 END) AS bigint) AS held, min((
    SELECT min(m.not_before) FROM outbound_mail m WHERE m.seq IN (
        SELECT min(r.seq) FROM outbound_ready r WHERE r.turn_id = t.node_id AND r.retry = (t.lane = 'retry') AND r.bulk = false
        UNION ALL
        SELECT min(r.seq) FROM outbound_ready r WHERE r.turn_id = t.node_id AND r.retry = (t.lane = 'retry') AND r.bulk = true
    ))) AS oldest_due_at
FROM outbound_turns t JOIN senders s ON s.id = t.node_id JOIN sender_domains d ON d.id = s.domain_id
    JOIN tenants n ON n.id = d.tenant_id
WHERE t.level = 'sender' AND t.waiting > 0 AND t.lane <> 'fifo' GROUP BY d.tenant_id

-- name: select_sending_lanes()
SELECT s.queue_lane AS lane, count(*) AS sending FROM outbound_mail m JOIN senders s ON s.id = m.sender_id
WHERE m.state = 'sending' GROUP BY s.queue_lane

-- name: select_newest_mail(before, most)
SELECT m.id, m.seq, m.tenant, m.username, m.kind, m.subject, m.state, m.error, m.asked_at, m.updated_at,
    (SELECT r.address FROM outbound_recipients r WHERE r.mail_id = m.id AND r.position = 0) AS recipient,
    (SELECT count(*) FROM outbound_recipients r WHERE r.mail_id = m.id) AS recipients,
    COALESCE((SELECT max(r.attempts) FROM outbound_recipients r WHERE r.mail_id = m.id), 0) AS attempts
FROM outbound_mail m WHERE m.seq < :before ORDER BY m.seq DESC LIMIT :most

-- name: select_mail_detail(id)
SELECT m.id, m.tenant, m.domain, m.username, m.envelope_sender, m.message_class, m.kind, m.subject, a.email AS account,
    m.action_id, m.state, m.cancel_requested, m.error, m.require_tls, m.discipline, m.leases, m.not_before, m.asked_at,
    m.admitted_at, m.updated_at, m.ended_at,
    (SELECT p.reason FROM pauses p WHERE p.scope = 'all' OR p.scope = CAST(m.account_id AS text) ORDER BY p.scope DESC LIMIT 1) AS paused
FROM outbound_mail m LEFT JOIN accounts a ON a.id = m.account_id WHERE m.id = :id

-- name: select_recipient_details(mail_id, most)
SELECT position, address, state, attempts, not_before, last_reply, enhanced, bounce_class, updated_at, complained_at
FROM outbound_recipients WHERE mail_id = :mail_id ORDER BY position LIMIT :most

-- part: suppressions
SELECT tenant, address, cause, detail, created_at, expires_at FROM suppressions

-- name: select_newest_suppressions(before_at, before_tenant, before_address, most)
{suppressions} WHERE (created_at, tenant, address) < (:before_at, :before_tenant, :before_address)
ORDER BY created_at DESC, tenant DESC, address DESC LIMIT :most

-- name: select_suppressions_of_tenant(tenant, before_at, before_address, most)
{suppressions} WHERE tenant = :tenant AND (created_at, address) < (:before_at, :before_address)
ORDER BY created_at DESC, address DESC LIMIT :most

-- name: select_tenants_by_id(ids)
SELECT id, name, weight, state, state_reason FROM tenants WHERE id {= ANY(:ids::bigint[])}
