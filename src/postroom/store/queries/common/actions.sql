-- name: insert_decision(id, account_id, message_id, generation, source, shadow, rule_id, rule_name, action_type, parameters_json, confidence, needs_approval, rationale, safety_json, model, prompt_version, alternatives_json, now)
INSERT INTO decisions (id, account_id, message_id, generation, source, shadow, rule_id, rule_name, action_type,
    parameters_json, confidence, needs_approval, rationale, safety_json, model, prompt_version, alternatives_json, created_at)
VALUES (:id, :account_id, :message_id, :generation, :source, :shadow, :rule_id, :rule_name, :action_type,
    :parameters_json, :confidence, :needs_approval, :rationale, :safety_json, :model, :prompt_version, :alternatives_json, :now)

-- name: insert_decision_rule(decision_id, rule_id, rule_name)
INSERT INTO decision_rules (decision_id, rule_id, rule_name) VALUES (:decision_id, :rule_id, :rule_name)
ON CONFLICT (decision_id, rule_id) DO NOTHING

-- name: select_decision_rules(message_id)
SELECT r.decision_id, r.rule_id, r.rule_name FROM decision_rules r JOIN decisions d ON d.id = r.decision_id
WHERE d.message_id = :message_id ORDER BY r.decision_id, r.rule_id

-- name: select_generation(message_id)
SELECT COALESCE(max(generation), 0) FROM decisions WHERE message_id = :message_id AND NOT shadow

-- name: insert_action(id, account_id, message_id, decision_id, actor, asked_by, action_type, parameters_json, state, action_hash, rationale, safety_json, job_id, batch_id, expires_at, irreversible, hides, now)
INSERT INTO actions (id, account_id, message_id, decision_id, actor, asked_by, action_type, parameters_json, state,
    action_hash, rationale, safety_json, job_id, batch_id, expires_at, irreversible, hides, created_at, updated_at)
VALUES (:id, :account_id, :message_id, :decision_id, :actor, :asked_by, :action_type, :parameters_json, :state,
    :action_hash, :rationale, :safety_json, :job_id, :batch_id, :expires_at, :irreversible, :hides, :now, :now)

-- name: select_action(id)
SELECT a.id, a.account_id, a.message_id, m.provider_message_id, a.action_type, a.parameters_json, a.state,
    a.pre_image_json, a.undo_hint_json, a.actor, COALESCE(a.approved_at, CASE a.actor WHEN 'user' THEN a.created_at
        WHEN 'rule' THEN COALESCE(r.updated_at, a.created_at) END) AS asked_at
FROM actions a JOIN messages m ON m.id = a.message_id
    LEFT JOIN decisions d ON d.id = a.decision_id LEFT JOIN rules r ON r.id = d.rule_id
WHERE a.id = :id

-- name: begin_action(id, job_id, now)
-- A retry of the job continues its own action, also after it failed and the user asked for another try.
UPDATE actions SET state = 'executing', error = NULL, started_at = COALESCE(started_at, :now), updated_at = :now
WHERE id = :id AND job_id = :job_id AND state IN ('queued', 'executing', 'failed', 'canceled') RETURNING id

-- name: refuse_action(id, job_id, error, undo_hint_json, now)
-- A failed action stays failed: it was tried. An earlier attempt that stored a pre-image may have changed the message.
UPDATE actions SET state = CASE state WHEN 'failed' THEN 'failed' ELSE 'canceled' END, updated_at = :now,
    error = CAST(:error AS text) || CASE WHEN pre_image_json IS NULL THEN ''
        ELSE '; an earlier attempt may have changed the message before it was' END,
    undo_hint_json = COALESCE(:undo_hint_json, undo_hint_json),
    executed_at = CASE WHEN undo_hint_json IS NULL THEN executed_at ELSE COALESCE(executed_at, :now) END
WHERE id = :id AND job_id = :job_id AND state IN ('queued', 'executing', 'failed', 'canceled') RETURNING id

-- name: count_irreversible(account_id, since)
SELECT count(*) FROM actions
WHERE account_id = :account_id AND started_at > :since AND irreversible

-- name: count_hidden(account_id, message_id, since, day, hour)
-- Mail that automation has hidden: of the sender of this message today, within the hour, and today. Each action counts,
-- whatever became of it.
SELECT count(CASE WHEN h.created_at >= :day AND m.sender = (SELECT sender FROM messages WHERE id = :message_id)
        THEN 1 END) AS of_sender,
    count(CASE WHEN h.created_at > :hour THEN 1 END) AS this_hour,
    count(CASE WHEN h.created_at >= :day THEN 1 END) AS today
FROM actions h JOIN messages m ON m.id = h.message_id
WHERE h.hides AND h.account_id = :account_id AND h.created_at >= :since

-- name: select_open_hiding(account_id, since, until)
SELECT id, account_id, state, job_id FROM actions
WHERE hides AND state IN ('queued', 'executing') AND created_at >= :since AND created_at <= :until
    AND (CAST(:account_id AS text) IS NULL OR CAST(account_id AS text) = CAST(:account_id AS text))
ORDER BY created_at, id

-- name: set_pre_image(id, pre_image_json, undo_hint_json, now)
UPDATE actions SET pre_image_json = :pre_image_json, undo_hint_json = :undo_hint_json, updated_at = :now
WHERE id = :id AND state = 'executing' AND pre_image_json IS NULL RETURNING id

-- name: hand_action_over(id, job_id, next_job_id, now)
UPDATE actions SET job_id = :next_job_id, updated_at = :now
WHERE id = :id AND job_id = :job_id AND state = 'executing' RETURNING id

-- name: keep_done_part(id, undo_hint_json, now)
UPDATE actions SET undo_hint_json = :undo_hint_json, executed_at = :now, updated_at = :now
WHERE id = :id AND state = 'executing' RETURNING message_id, account_id

-- name: complete_action(id, undo_hint_json, now)
UPDATE actions SET state = 'completed', undo_hint_json = :undo_hint_json, executed_at = :now, updated_at = :now
WHERE id = :id AND state = 'executing' RETURNING message_id, account_id

-- name: fail_action(id, error, undo_hint_json, now)
-- With a hint, a part of it may have been done, and is found by its time to be undone.
UPDATE actions SET state = 'failed', error = :error, updated_at = :now,
    undo_hint_json = COALESCE(:undo_hint_json, undo_hint_json),
    executed_at = CASE WHEN undo_hint_json IS NULL THEN executed_at ELSE COALESCE(executed_at, :now) END
WHERE id = :id AND state IN ('queued', 'executing') RETURNING id

-- name: cancel_action(id, error, now)
UPDATE actions SET state = 'canceled', error = :error, updated_at = :now,
    executed_at = CASE WHEN undo_hint_json IS NULL THEN executed_at ELSE COALESCE(executed_at, :now) END
WHERE id = :id AND state IN ('queued', 'approved_pending', 'executing') RETURNING id

-- name: select_undo_of(action_id)
SELECT a.id, a.state, a.job_id FROM action_links l JOIN actions a ON a.id = l.cause_action_id
WHERE l.effect_action_id = :action_id AND l.relation_type = 'undo_of'

-- name: select_done_after(action_id, most)
-- Other actions on the same message that were done later, in the order in which many actions are undone.
SELECT later.id FROM actions a JOIN actions later ON later.message_id = a.message_id
WHERE a.id = :action_id AND later.actor <> 'undo' AND (later.executed_at, later.id) > (a.executed_at, a.id)
ORDER BY later.executed_at DESC, later.id DESC LIMIT :most

-- name: select_message_of_action(action_id)
SELECT message_id FROM actions WHERE id = :action_id

-- name: insert_action_link(id, cause, effect, relation, now)
INSERT INTO action_links (id, cause_action_id, effect_action_id, relation_type, created_at)
VALUES (:id, :cause, :effect, :relation, :now)

-- name: take_undo_over(id, job_id, now)
UPDATE actions SET state = 'executing', job_id = :job_id, error = NULL, updated_at = :now
WHERE id = :id AND (state IN ('failed', 'canceled') OR (job_id = :job_id AND state IN ('queued', 'executing')))
RETURNING id

-- name: select_rule_decided(name)
SELECT 1 FROM decisions WHERE rule_name = :name
UNION ALL SELECT 1 FROM decision_rules WHERE rule_name = :name LIMIT 1

-- name: select_done_before(message_id, action_hash)
SELECT id FROM actions
WHERE message_id = :message_id AND action_hash = :action_hash AND state IN ('queued', 'executing', 'completed') LIMIT 1

-- name: select_decided_before(message_id, generation)
SELECT source, action_type, needs_approval FROM decisions
WHERE message_id = :message_id AND generation < :generation AND NOT shadow ORDER BY generation DESC LIMIT 1

-- name: cancel_waiting(message_id, error, now)
-- Decided actions on a message that wait for approval; requests of people and agents keep waiting.
UPDATE actions SET state = 'canceled', error = :error, updated_at = :now
WHERE message_id = :message_id AND state = 'approved_pending' AND decision_id IS NOT NULL RETURNING id

-- name: select_undoable(rule_name, account_id, batch_id, only_hiding, askers, since, until, most)
-- Actions that can be undone and were not, newest first. One that failed halfway has a hint for the part that was done.
SELECT a.id, a.account_id, a.message_id
FROM actions a LEFT JOIN decisions d ON d.id = a.decision_id
WHERE a.state IN ('completed', 'failed', 'canceled') AND a.actor <> 'undo'
    AND a.undo_hint_json ->> 'inverse_action' <> 'none'
    AND (CAST(:rule_name AS text) IS NULL OR d.rule_name = CAST(:rule_name AS text)
        OR EXISTS (SELECT 1 FROM decision_rules r WHERE r.decision_id = d.id AND r.rule_name = CAST(:rule_name AS text)))
    AND (CAST(:account_id AS text) IS NULL OR CAST(a.account_id AS text) = CAST(:account_id AS text))
    AND (CAST(:batch_id AS text) IS NULL OR CAST(a.batch_id AS text) = CAST(:batch_id AS text))
    AND (a.hides OR NOT CAST(:only_hiding AS boolean))
    AND (CAST(:askers AS text) IS NULL
        OR replace(CAST(:askers AS text), '|' || COALESCE(a.asked_by, a.actor) || '|', '') <> CAST(:askers AS text))
    AND a.executed_at >= :since AND a.executed_at <= :until
    AND NOT EXISTS (SELECT 1 FROM action_links l JOIN actions u ON u.id = l.cause_action_id
        WHERE l.effect_action_id = a.id AND l.relation_type = 'undo_of' AND u.state IN ('queued', 'executing', 'completed'))
ORDER BY a.executed_at DESC, a.id DESC LIMIT :most

-- name: count_done_since(since, most)
-- The newest of those that were done since then and can be undone, counted by action, and by whether the message was in
-- the inbox before.
SELECT action_type, parameters, left_inbox, count(*) FROM (
    SELECT a.action_type, CAST(a.parameters_json AS text) AS parameters,
        a.undo_hint_json -> 'inverse_parameters' ->> 'add_labels' LIKE '%"INBOX"%' AS left_inbox
    FROM actions a
    WHERE a.state = 'completed' AND a.actor <> 'undo' AND a.undo_hint_json ->> 'inverse_action' <> 'none'
        AND a.executed_at >= :since
        AND NOT EXISTS (SELECT 1 FROM action_links l JOIN actions u ON u.id = l.cause_action_id
            WHERE l.effect_action_id = a.id AND l.relation_type = 'undo_of'
                AND u.state IN ('queued', 'executing', 'completed'))
    ORDER BY a.executed_at DESC LIMIT :most) AS found
GROUP BY action_type, parameters, left_inbox

-- name: select_decisions(message_id)
SELECT id, account_id, message_id, generation, source, shadow, rule_id, rule_name, action_type, parameters_json,
    confidence, needs_approval, rationale, safety_json, model, prompt_version, alternatives_json, created_at
FROM decisions WHERE message_id = :message_id ORDER BY generation DESC, shadow, created_at DESC

-- name: select_deciding_rules(ids, most)
-- The rules that decided about these messages last, and how many each.
SELECT d.rule_name AS rule, CAST(count(*) AS bigint) AS messages FROM decisions d
WHERE d.message_id {= ANY(:ids::uuid[])} AND NOT d.shadow AND d.rule_name IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM decisions later
        WHERE later.message_id = d.message_id AND later.generation > d.generation AND NOT later.shadow)
GROUP BY d.rule_name ORDER BY count(*) DESC, d.rule_name LIMIT :most

-- name: insert_pause(scope, reason, set_by, now)
INSERT INTO pauses (scope, reason, set_by, since) VALUES (:scope, :reason, :set_by, :now)
ON CONFLICT (scope) DO UPDATE SET reason = excluded.reason, set_by = excluded.set_by
RETURNING since

-- name: delete_pause(scope)
DELETE FROM pauses WHERE scope = :scope RETURNING since

-- name: select_pauses()
SELECT scope, reason, set_by, since FROM pauses ORDER BY since

-- name: select_pauses_of(account_id)
SELECT scope, reason FROM pauses WHERE scope IN ('all', :account_id) ORDER BY CASE scope WHEN 'all' THEN 0 ELSE 1 END

-- name: insert_protected(kind, value, reason, now)
INSERT INTO protected (kind, value, reason, created_at) VALUES (:kind, :value, :reason, :now)
ON CONFLICT (kind, value) DO UPDATE SET reason = excluded.reason RETURNING created_at

-- name: delete_protected(kind, value)
DELETE FROM protected WHERE kind = :kind AND value = :value RETURNING value

-- name: select_protected()
SELECT kind, value, reason, created_at FROM protected ORDER BY kind, value

-- name: insert_shadow(kind, name, now)
INSERT INTO shadows (kind, name, since) VALUES (:kind, :name, :now)
ON CONFLICT (kind, name) DO NOTHING RETURNING since

-- name: delete_shadow(kind, name)
DELETE FROM shadows WHERE kind = :kind AND name = :name RETURNING since

-- name: select_shadows()
SELECT kind, name, since FROM shadows ORDER BY kind, name

-- name: select_to_decide_again(since, most)
-- Messages on which no rule or model decided, newest first, with the generation.
SELECT d.account_id, d.message_id, d.generation FROM decisions d
WHERE d.source = 'none' AND NOT d.shadow AND d.created_at >= :since
    AND EXISTS (SELECT 1 FROM messages m WHERE m.id = d.message_id AND m.pruned_at IS NULL)
    AND d.generation = (SELECT max(generation) FROM decisions WHERE message_id = d.message_id AND NOT shadow)
ORDER BY d.created_at DESC LIMIT :most

-- name: select_waiting_to_act(account_id, since, most)
-- Messages of an account since a time on which no rule or model decided with effect, newest first, with the generation.
-- Those that came later, by a backfill or a search, are left out. `would` is what was decided in shadow before acting.
SELECT m.account_id, d.message_id, d.generation, (SELECT s.action_type FROM decisions s WHERE s.message_id = m.id AND s.shadow
    AND s.generation = d.generation AND s.safety_json ->> 'shadow' = 'before_acting' LIMIT 1) AS would
FROM messages m JOIN decisions d ON d.message_id = m.id AND NOT d.shadow AND d.source = 'none'
WHERE m.account_id = :account_id AND m.sent_at >= :since AND m.deleted_at IS NULL AND m.pruned_at IS NULL AND NOT m.on_demand
    AND d.generation = (SELECT max(generation) FROM decisions WHERE message_id = m.id AND NOT shadow)
    AND NOT EXISTS (SELECT 1 FROM backfill_mail b WHERE b.message_id = m.id)
ORDER BY m.sent_at DESC LIMIT :most

-- name: select_acts_by_now(message_id)
-- Whether the account acts on this message. Beginning to act waits for this transaction, or this one for that: the row is
-- locked whatever is in it.
SELECT COALESCE(m.sent_at >= a.acts_from, false) FROM accounts a JOIN messages m ON m.account_id = a.id
WHERE m.id = :message_id {FOR SHARE OF a}

-- name: select_snoozes_after(action_id)
-- Until when the message of this snooze was snoozed again, by a later snooze that was not undone.
SELECT s.pre_image_json ->> 'snooze_until' FROM actions own JOIN actions s ON s.message_id = own.message_id
WHERE own.id = :action_id AND s.pre_image_json ->> 'unsnooze_job_id' IS NOT NULL AND s.started_at > own.started_at
    AND s.state IN ('executing', 'completed')
    AND NOT EXISTS (SELECT 1 FROM action_links l JOIN actions u ON u.id = l.cause_action_id
        WHERE l.effect_action_id = s.id AND l.relation_type = 'undo_of' AND u.state IN ('queued', 'executing', 'completed'))

-- name: select_last_place(message_id)
-- Where the last action on the message, or its undo, has left it.
SELECT undo_hint_json ->> 'place' FROM actions
WHERE message_id = :message_id AND executed_at IS NOT NULL AND undo_hint_json ->> 'place' IS NOT NULL
ORDER BY executed_at DESC, id DESC LIMIT 1

-- name: select_waking_jobs(account_id, gmail_id)
-- The jobs that were to wake the message, of all its snoozes.
SELECT a.pre_image_json ->> 'unsnooze_job_id' FROM messages m JOIN actions a ON a.message_id = m.id
WHERE m.account_id = :account_id AND m.provider_message_id = :gmail_id
    AND a.pre_image_json ->> 'unsnooze_job_id' IS NOT NULL

-- name: select_snooze_before(action_id)
-- The last snooze of this action's message that began before it and was not undone; and when the action began.
SELECT s.pre_image_json, own.started_at FROM actions own JOIN actions s ON s.message_id = own.message_id
WHERE own.id = :action_id AND s.pre_image_json ->> 'unsnooze_job_id' IS NOT NULL AND s.started_at < own.started_at
    AND s.state = 'completed'
    AND NOT EXISTS (SELECT 1 FROM action_links l JOIN actions u ON u.id = l.cause_action_id
        WHERE l.effect_action_id = s.id AND l.relation_type = 'undo_of' AND u.state IN ('queued', 'executing', 'completed'))
ORDER BY s.started_at DESC LIMIT 1

-- name: lock_action(id)
SELECT account_id, message_id, actor, action_type, parameters_json, state, action_hash, approved_by, asked_by, started_at,
    undo_hint_json, error, expires_at, updated_at
FROM actions WHERE id = :id {FOR UPDATE}

-- name: lock_pause(scope)
-- Ending the pause, and then releasing the jobs that wait for it, waits until this job is parked under its key.
SELECT scope FROM pauses WHERE scope = :scope {FOR SHARE}

-- name: select_undos_asked_by(actor)
-- The actions of others that somebody asked to undo, and the record of the undo once it has begun.
SELECT DISTINCT a.account_id, a.id, l.cause_action_id FROM audit u JOIN actions a ON a.id = u.object_id{::uuid}
    LEFT JOIN action_links l ON l.effect_action_id = a.id AND l.relation_type = 'undo_of'
WHERE u.actor = :actor AND u.action = 'action.undo' AND u.after_json IS NULL AND COALESCE(a.asked_by, '') <> :actor

-- name: select_parking_keys(like)
SELECT DISTINCT parked_by FROM {job_queue} WHERE parked_by IS NOT NULL AND parked_by LIKE :like

-- name: lock_asker(asked_by)
-- Held to the end of the transaction. Two accounts with the same hash only wait for each other.
SELECT 1 {FROM pg_advisory_xact_lock(730541, hashtext(:asked_by))}
