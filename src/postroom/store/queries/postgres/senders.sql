-- name: lock_sender(id)
SELECT id FROM senders WHERE id = :id FOR NO KEY UPDATE

-- name: lock_tenant(name)
SELECT id FROM tenants WHERE name = :name FOR NO KEY UPDATE

-- name: add_sender_hours(rows, hour, now)
INSERT INTO sender_hours (sender_id, hour, accepted, delivered, bounced, rejected, first_at, first_bad_at)
SELECT (e ->> 0)::bigint, :hour, (e ->> 1)::bigint, (e ->> 2)::bigint, (e ->> 3)::bigint, (e ->> 4)::bigint, :now,
    CASE WHEN (e ->> 3)::bigint + (e ->> 4)::bigint > 0 THEN :now::timestamptz END
FROM jsonb_array_elements(:rows::jsonb) AS e
ON CONFLICT (sender_id, hour) DO UPDATE SET accepted = sender_hours.accepted + excluded.accepted,
    delivered = sender_hours.delivered + excluded.delivered, bounced = sender_hours.bounced + excluded.bounced,
    rejected = sender_hours.rejected + excluded.rejected,
    first_bad_at = COALESCE(sender_hours.first_bad_at, excluded.first_bad_at)

-- name: record_scores(rows)
UPDATE senders SET abuse_score = (e ->> 1)::integer FROM jsonb_array_elements(:rows::jsonb) AS e
WHERE senders.id = (e ->> 0)::bigint
