-- name: select_messages_of_part(first_end, last_end, low, high, most)
SELECT id, id AS message_id FROM messages WHERE {ends_within}
UNION SELECT id, id AS message_id FROM messages WHERE id >= :low AND id <= :high
LIMIT :most

-- name: select_actions_of_part(first_end, last_end, low, high, most)
SELECT id, message_id FROM actions WHERE {ends_within}
UNION SELECT id, message_id FROM actions WHERE id >= :low AND id <= :high
LIMIT :most

-- An index of the ends of all jobs would cost each job a third of its enqueueing. People name those that a list has just
-- shown: the newest, and the newest that failed.
-- name: select_jobs_of_part(first_end, last_end, low, high, most)
SELECT id FROM (SELECT id FROM jobs ORDER BY id DESC LIMIT 50000) AS newest WHERE {ends_within}
UNION SELECT id FROM ({failed_jobs}) AS failed WHERE {ends_within}
UNION SELECT id FROM jobs WHERE id >= :low AND id <= :high
LIMIT :most

-- name: select_outgoing_of_part(first_end, last_end, low, high, most)
SELECT id FROM outbound_mail WHERE {ends_within}
UNION SELECT id FROM outbound_mail WHERE id >= :low AND id <= :high
LIMIT :most

-- name: select_backfills_of_part(first_end, last_end, low, high, most)
SELECT id FROM backfill_jobs WHERE {ends_within}
UNION SELECT id FROM backfill_jobs WHERE id >= :low AND id <= :high
LIMIT :most

-- name: select_proposals_of_part(first_end, last_end, low, high, most)
SELECT id FROM proposals WHERE {ends_within}
UNION SELECT id FROM proposals WHERE id >= :low AND id <= :high
LIMIT :most
