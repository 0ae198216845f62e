-- part: narrowed
-- Backfilled mail has the tier `history`.
(CAST(:tier AS text) IS NULL OR (CAST(:tier AS text) IN ('history', m.policy_tier)
        AND (CAST(:tier AS text) = 'history') = EXISTS (SELECT 1 FROM backfill_mail b WHERE b.message_id = m.id)))
    AND (CAST(:account_id AS text) IS NULL OR CAST(m.account_id AS text) = CAST(:account_id AS text))
    AND (CAST(:category AS text) IS NULL OR EXISTS (SELECT 1 FROM message_categories c
        WHERE c.message_id = m.id AND c.category = CAST(:category AS text)))

-- name: select_mail_page(tier, account_id, source, actor, only_done, category, since, at, id, most)
-- Messages by when they were stored, newest first.
SELECT m.id, m.created_at FROM messages m
WHERE m.pruned_at IS NULL AND m.created_at >= :since AND (m.created_at, m.id) < (:at, :id) AND {narrowed}
    AND (CAST(:source AS text) IS NULL OR EXISTS (SELECT 1 FROM decisions d
        WHERE d.message_id = m.id AND NOT d.shadow AND d.source = CAST(:source AS text)))
    AND (CAST(:actor AS text) IS NULL OR EXISTS (SELECT 1 FROM actions o
        WHERE o.message_id = m.id AND o.actor = CAST(:actor AS text)))
    AND (NOT CAST(:only_done AS boolean) OR EXISTS (SELECT 1 FROM actions o
        WHERE o.message_id = m.id AND o.state = 'completed' AND o.actor <> 'undo'
            AND NOT EXISTS (SELECT 1 FROM action_links l JOIN actions u ON u.id = l.cause_action_id
                WHERE l.effect_action_id = o.id AND l.relation_type = 'undo_of' AND u.state = 'completed')))
ORDER BY m.created_at DESC, m.id DESC LIMIT :most

-- name: select_sent_page(tier, account_id, category, only_kept, since, most)
-- Mail that is still in its mailbox, by its own date, newest first.
SELECT m.id FROM messages m
WHERE m.deleted_at IS NULL AND m.sent_at >= :since AND {narrowed}
    AND (NOT CAST(:only_kept AS boolean) OR NOT EXISTS (SELECT 1 FROM actions o WHERE o.message_id = m.id))
ORDER BY m.sent_at DESC, m.id DESC LIMIT :most

-- name: select_mail_window(at, id, size)
-- From when on there are that many messages; nothing if there are fewer.
SELECT created_at FROM messages WHERE pruned_at IS NULL AND (created_at, id) < (:at, :id)
ORDER BY created_at DESC, id DESC LIMIT 1 OFFSET :size

-- name: select_asking_page(since, at, id, most)
-- Messages with an action that waits for a yes, by the newest of them.
SELECT a.message_id, a.created_at, a.id FROM actions a
WHERE a.state = 'approved_pending' AND a.created_at >= :since AND (a.created_at, a.id) < (:at, :id)
    AND NOT EXISTS (SELECT 1 FROM actions n WHERE n.message_id = a.message_id AND n.state = 'approved_pending'
        AND (n.created_at, n.id) > (a.created_at, a.id))
ORDER BY a.created_at DESC, a.id DESC LIMIT :most

-- name: select_failed_page(since, at, id, most)
-- Messages with an action that failed, by the newest of them.
SELECT a.message_id, a.created_at, a.id FROM actions a
WHERE a.state = 'failed' AND a.created_at >= :since AND (a.created_at, a.id) < (:at, :id)
    AND NOT EXISTS (SELECT 1 FROM actions n WHERE n.message_id = a.message_id AND n.state = 'failed'
        AND (n.created_at, n.id) > (a.created_at, a.id))
ORDER BY a.created_at DESC, a.id DESC LIMIT :most

-- name: select_undone_page(since, at, id, most)
-- Messages on which something was undone, by the newest undo.
SELECT a.message_id, a.created_at, a.id FROM actions a
WHERE a.actor = 'undo' AND a.state = 'completed' AND a.created_at >= :since AND (a.created_at, a.id) < (:at, :id)
    AND NOT EXISTS (SELECT 1 FROM actions n WHERE n.message_id = a.message_id AND n.actor = 'undo'
        AND n.state = 'completed' AND (n.created_at, n.id) > (a.created_at, a.id))
ORDER BY a.created_at DESC, a.id DESC LIMIT :most

-- part: is_hidden
a.hides AND a.state IN ('queued', 'executing', 'completed')
    AND NOT EXISTS (SELECT 1 FROM action_links l JOIN actions u ON u.id = l.cause_action_id
        WHERE l.effect_action_id = a.id AND l.relation_type = 'undo_of' AND u.state IN ('queued', 'executing', 'completed'))

-- name: select_hidden_page(since, at, id, most)
-- Messages that automation has hidden by itself, by the newest action that does.
SELECT a.message_id, a.created_at, a.id FROM actions a
WHERE {is_hidden} AND a.created_at >= :since AND (a.created_at, a.id) < (:at, :id)
    AND NOT EXISTS (SELECT 1 FROM actions n WHERE n.message_id = a.message_id AND n.hides
        AND (n.created_at, n.id) > (a.created_at, a.id))
ORDER BY a.created_at DESC, a.id DESC LIMIT :most

-- name: count_hidden_since(since, most)
SELECT count(*) FROM (SELECT 1 FROM actions a WHERE {is_hidden} AND a.created_at >= :since LIMIT :most) AS found

-- name: select_event_queues()
-- The names of all queues but that of mail: one index lookup for each.
WITH RECURSIVE queues (queue) AS (
    SELECT min(queue) FROM envelopes
    UNION ALL
    SELECT (SELECT min(e.queue) FROM envelopes e WHERE e.queue > queues.queue) FROM queues WHERE queues.queue IS NOT NULL
)
SELECT queue FROM queues WHERE queue <> 'email'

-- name: select_event_page(queue, tier, since, at, id, most)
SELECT e.id, e.accepted_at FROM envelopes e
WHERE e.queue = :queue AND e.copy_of IS NULL AND e.accepted_at >= :since AND e.accepted_at <= :at
    AND (e.accepted_at, e.id) < (:at, :id) AND (CAST(:tier AS text) IS NULL OR e.tier = CAST(:tier AS text))
ORDER BY e.accepted_at DESC, e.id DESC LIMIT :most

-- name: select_event_window(queue, at, size)
SELECT accepted_at FROM envelopes WHERE queue = :queue AND accepted_at <= :at
ORDER BY accepted_at DESC LIMIT 1 OFFSET :size

-- name: select_unstored_page(within, since, at, id, most)
-- Mail that is not stored yet, or could not be.
SELECT e.id, e.accepted_at FROM (SELECT seq, id, accepted_at FROM envelopes
    WHERE queue = 'email' AND copy_of IS NULL AND accepted_at >= :since AND accepted_at <= :at AND (accepted_at, id) < (:at, :id)
    ORDER BY accepted_at DESC, id DESC LIMIT :within) e
WHERE EXISTS (SELECT 1 FROM inbox_queue q WHERE q.seq = e.seq)
    OR EXISTS (SELECT 1 FROM inbox_ends x WHERE x.seq = e.seq AND x.state = 'failed')
ORDER BY e.accepted_at DESC, e.id DESC LIMIT :most

-- name: count_asking(most)
SELECT count(*) FROM (SELECT 1 FROM actions WHERE state = 'approved_pending' LIMIT :most) AS found

-- name: count_failed(since, most)
SELECT count(*) FROM (SELECT 1 FROM actions WHERE state = 'failed' AND created_at >= :since LIMIT :most) AS found

-- name: count_undone(since, most)
SELECT count(*) FROM (SELECT 1 FROM actions WHERE actor = 'undo' AND state = 'completed' AND created_at >= :since
    LIMIT :most) AS found

-- name: select_listed_events(ids, length)
-- Of an event, the beginning of its text; of mail that is not stored, the envelope.
SELECT e.id, e.queue, e.tier, e.channel, e.endpoint_identity, e.sender, e.kind, e.members, e.accepted_at AS at,
    COALESCE(q.state, x.state) AS state, COALESCE(q.reason, x.reason) AS reason, x.ended_at,
    COALESCE(q.attempts, x.attempts) AS attempts, x.linked_to,
    substr(e.envelope_json -> 'payload' ->> 'normalized_text', 1, :length) AS text,
    CASE WHEN e.queue = 'email' THEN e.envelope_json END AS envelope_json
FROM envelopes e LEFT JOIN inbox_queue q ON q.seq = e.seq LEFT JOIN inbox_ends x ON x.seq = e.seq
WHERE e.id {= ANY(:ids::uuid[])}
