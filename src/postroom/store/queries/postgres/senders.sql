-- name: lock_sender(id)
SELECT id FROM senders WHERE id = :id FOR NO KEY UPDATE

-- name: lock_tenant(name)
SELECT id FROM tenants WHERE name = :name FOR NO KEY UPDATE

-- name: add_sender_hours(rows, hour)
INSERT INTO sender_hours (sender_id, hour, accepted, delivered, bounced, rejected)
SELECT (e ->> 0)::bigint, :hour, (e ->> 1)::bigint, (e ->> 2)::bigint, (e ->> 3)::bigint, (e ->> 4)::bigint
FROM jsonb_array_elements(:rows::jsonb) AS e
ON CONFLICT (sender_id, hour) DO UPDATE SET accepted = sender_hours.accepted + excluded.accepted,
    delivered = sender_hours.delivered + excluded.delivered, bounced = sender_hours.bounced + excluded.bounced,
    rejected = sender_hours.rejected + excluded.rejected

-- name: record_scores(rows)
UPDATE senders SET abuse_score = (e ->> 1)::integer FROM jsonb_array_elements(:rows::jsonb) AS e
WHERE senders.id = (e ->> 0)::bigint
