-- name: lock_sender(id)
-- There is one writer, so no lock is needed.
SELECT id FROM senders WHERE id = :id

-- name: lock_tenant(name)
SELECT id FROM tenants WHERE name = :name

-- name: add_sender_hours(rows, hour, now)
INSERT INTO sender_hours (sender_id, hour, accepted, delivered, bounced, rejected, first_at, first_bad_at)
SELECT value ->> 0, :hour, value ->> 1, value ->> 2, value ->> 3, value ->> 4, :now,
    CASE WHEN (value ->> 3) + (value ->> 4) > 0 THEN :now END FROM json_each(:rows) WHERE true
ON CONFLICT (sender_id, hour) DO UPDATE SET accepted = accepted + excluded.accepted,
    delivered = delivered + excluded.delivered, bounced = bounced + excluded.bounced, rejected = rejected + excluded.rejected,
    first_bad_at = COALESCE(first_bad_at, excluded.first_bad_at)

-- name: record_scores(rows)
UPDATE senders SET abuse_score = e.value ->> 1 FROM json_each(:rows) AS e WHERE senders.id = e.value ->> 0
