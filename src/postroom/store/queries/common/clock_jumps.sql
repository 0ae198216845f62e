-- name: shorten_leadership(name, until)
UPDATE leaders SET lease_until = :until WHERE name = :name AND lease_until > :until

-- name: select_leases_ahead(ahead)
SELECT token, lease_until, heartbeat_at FROM job_leases WHERE heartbeat_at > :ahead

-- name: select_lease_over(now, ahead)
SELECT 1 FROM job_leases WHERE lease_until < :now OR heartbeat_at > :ahead LIMIT 1

-- name: shorten_message_leases(ahead, until)
UPDATE inbox_queue SET lease_until = :until WHERE state = 'leased' AND lease_until > :ahead RETURNING seq

-- name: shorten_queue_leases(queue, ahead, until)
UPDATE inbox_queue SET lease_until = :until
WHERE state = 'leased' AND lease_until > :ahead AND queue = :queue RETURNING seq

-- name: shorten_mail_leases(ahead, until)
UPDATE outbound_mail SET lease_until = :until WHERE id IN (
    SELECT id FROM outbound_mail WHERE state = 'sending' AND lease_until > :ahead {ORDER BY id FOR NO KEY UPDATE}
)
RETURNING id

-- name: shorten_request_leases(ahead, until)
UPDATE connector_requests SET lease_until = :until WHERE state = 'leased' AND lease_until > :ahead RETURNING id

-- name: forget_texts_ahead(ahead)
DELETE FROM inbox_texts WHERE expires_at > :ahead RETURNING queue

-- name: select_mail_ahead(ahead, now)
-- Mail whose sender chose the time was never leased, and was to leave later than it was asked for. Mail that is being
-- sent comes back if its holder has died.
SELECT m.id, m.asked_at FROM outbound_mail m
WHERE m.state IN ('queued', 'sending', 'deferred', 'unknown') AND m.state <> 'unknown'
    AND NOT (m.kind = 'submitted' AND m.leases = 0 AND m.admitted_at > m.asked_at)
    AND (m.asked_at > :ahead OR m.admitted_at > :ahead OR (m.not_before > :now AND m.updated_at > :ahead) OR EXISTS (
        SELECT 1 FROM outbound_recipients r WHERE r.mail_id = m.id AND r.state IN ('queued', 'sending', 'deferred')
            AND r.not_before > :now AND r.updated_at > :ahead))

-- name: release_mail_ahead(id, asked_at, now)
UPDATE outbound_mail SET not_before = :now, asked_at = :asked_at, updated_at = :now,
    admitted_at = CASE WHEN admitted_at > :now THEN :now ELSE admitted_at END
WHERE id = :id;
UPDATE outbound_recipients SET not_before = :now, updated_at = :now
WHERE mail_id = :id AND state IN ('queued', 'sending', 'deferred')

-- name: select_approvals_ahead(ahead)
SELECT id, updated_at, expires_at FROM actions
WHERE state = 'approved_pending' AND expires_at IS NOT NULL AND updated_at > :ahead

-- name: move_approval(id, written_at, expires_at)
UPDATE actions SET expires_at = :expires_at, updated_at = :written_at WHERE id = :id AND state = 'approved_pending'

-- name: select_requests_ahead(ahead)
SELECT id, created_at, expires_at FROM connector_requests WHERE state IN ('queued', 'leased') AND created_at > :ahead

-- name: move_request(id, written_at, expires_at)
UPDATE connector_requests SET expires_at = :expires_at, created_at = :written_at WHERE id = :id

-- name: select_links_ahead(ahead)
SELECT id, created_at, expires_at FROM sign_in_links WHERE created_at > :ahead

-- name: move_sign_in_link(id, written_at, expires_at)
UPDATE sign_in_links SET expires_at = :expires_at, created_at = :written_at WHERE id = :id

-- name: select_throttles_ahead(ahead)
-- Only those that the score began: a person may have chosen the end.
SELECT s.id, t.started_at, s.throttled_until FROM sender_throttles t JOIN senders s ON s.id = t.sender_id
WHERE t.started_at > :ahead AND t.ended_at IS NULL AND t.started_by = 'score' AND s.throttled_until IS NOT NULL

-- name: move_throttle(id, written_at, until)
UPDATE senders SET throttled_until = :until WHERE id = :id;
UPDATE sender_throttles SET until = :until, started_at = :written_at WHERE sender_id = :id AND ended_at IS NULL

-- name: select_sessions_ahead(ahead)
SELECT id, created_at, last_seen_at, rotated_at, proven_at, previous_until, idle_ends_at, ends_at FROM sessions
WHERE last_seen_at > :ahead

-- name: move_session(id, created_at, last_seen_at, rotated_at, proven_at, previous_until, idle_ends_at, ends_at)
UPDATE sessions SET created_at = :created_at, last_seen_at = :last_seen_at, rotated_at = :rotated_at, proven_at = :proven_at,
    previous_until = :previous_until, idle_ends_at = :idle_ends_at, ends_at = :ends_at
WHERE id = :id

-- name: date_auto_replies_back(ahead, now)
UPDATE auto_replies SET replied_at = :now WHERE replied_at > :ahead RETURNING sender

-- name: date_approval_slots_back(ahead, now)
UPDATE approval_slots SET taken_at = :now WHERE taken_at > :ahead RETURNING action_id

-- name: date_irreversible_actions_back(ahead, now)
UPDATE actions SET started_at = :now WHERE irreversible AND started_at IS NOT NULL AND started_at > :ahead RETURNING id

-- name: date_model_calls_back(ahead, now)
UPDATE model_calls SET started_at = :now WHERE state = 'started' AND started_at > :ahead RETURNING id

-- name: date_waiting_messages_back(ahead, now)
UPDATE inbox_queue SET accepted_at = :now WHERE accepted_at > :ahead RETURNING seq

-- name: forget_days_ahead(day)
-- What was counted on a day that has not begun would use up that day's limit.
DELETE FROM accepted_days WHERE day > :day RETURNING node_id

-- name: select_suppressions_ahead(ahead)
SELECT tenant, address, created_at, expires_at FROM suppressions WHERE expires_at IS NOT NULL AND created_at > :ahead

-- name: move_suppression(tenant, address, written_at, expires_at)
UPDATE suppressions SET created_at = :written_at, expires_at = :expires_at WHERE tenant = :tenant AND address = :address

-- name: date_strikes_back(ahead, now)
UPDATE strikes SET created_at = :now WHERE created_at > :ahead RETURNING address

-- name: date_acting_back(ahead, now)
-- A time to come is never accepted here: whoever said "from now on" said it to a clock that was ahead.
UPDATE accounts SET acts_from = :now WHERE acts_from > :ahead RETURNING id

-- name: move_wait(seq, not_before, written_at)
UPDATE {job_queue} SET not_before = :not_before, updated_at = :written_at WHERE seq = :seq AND state = 'queued' AND NOT ready

-- name: end_retry_waits_ahead(ahead, now)
-- A parked job looks again now and then; a job that was never tried may wait for a time that a person chose.
UPDATE {job_queue} SET not_before = :now, updated_at = :now
WHERE {asleep} AND not_before > :now AND (attempts > 0 OR parked_by IS NOT NULL) AND updated_at > :ahead RETURNING seq

-- name: select_waits_ahead(ahead, now)
SELECT q.seq, type, payload_json, updated_at, not_before, id FROM {with_bodies}
WHERE {asleep} AND not_before > :now AND attempts = 0 AND parked_by IS NULL AND updated_at > :ahead

-- name: count_neglected(since)
SELECT (SELECT count(*) FROM (SELECT 1 FROM {job_queue} WHERE {due} LIMIT 1000) AS due),
    (SELECT count(*) FROM job_leases WHERE lease_until <= :since)
