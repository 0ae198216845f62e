-- name: open_model_day(day)
INSERT INTO model_spend (day, micros, calls) VALUES (:day, 0, 0) ON CONFLICT (day) DO NOTHING

-- name: reserve_model_spend(day, micros, cap)
-- The row is read again once its holder has committed: that keeps the sum under the cap.
UPDATE model_spend SET micros = micros + :micros, calls = calls + 1
WHERE day = :day AND micros + :micros <= :cap
RETURNING micros

-- name: lock_model_day(day)
-- Holds the row until the commit: reservations are made one after another.
UPDATE model_spend SET micros = micros WHERE day = :day RETURNING micros

-- name: sum_held(day)
SELECT COALESCE(SUM(reserved_micros), 0) FROM model_calls
WHERE state = 'started' AND day = :day AND backfill_job_id IS NULL

-- part: settled_and_held
SELECT COALESCE(SUM(CASE WHEN state <> 'started' THEN cost_micros END), 0) AS settled,
    COALESCE(SUM(CASE WHEN state = 'started' THEN reserved_micros END), 0) AS held
FROM model_calls

-- name: sum_sender_share(day, key)
{settled_and_held} WHERE day = :day AND share_sender = :key

-- name: sum_domain_share(day, key)
{settled_and_held} WHERE day = :day AND share_domain = :key

-- name: upsert_model_wait(message_id, day, kind, share_key, spent_micros, cap_micros, now)
INSERT INTO model_waits (message_id, day, kind, share_key, spent_micros, cap_micros, waits_since)
VALUES (:message_id, :day, :kind, :share_key, :spent_micros, :cap_micros, :now)
ON CONFLICT (message_id) DO UPDATE SET day = excluded.day, kind = excluded.kind, share_key = excluded.share_key,
    spent_micros = excluded.spent_micros, cap_micros = excluded.cap_micros, waits_since = excluded.waits_since

-- name: select_ended_shares(day)
SELECT w.kind, min(m.sender) AS sender, min(m.policy_tier) AS policy_tier, max(w.spent_micros) AS spent_micros,
    max(w.cap_micros) AS cap_micros, count(*) AS messages, min(w.waits_since) AS first_at
FROM model_waits w JOIN messages m ON m.id = w.message_id
WHERE w.day = :day GROUP BY w.kind, w.share_key ORDER BY messages DESC, w.kind, w.share_key LIMIT 100

-- name: select_model_wait(message_id)
SELECT kind, waits_since FROM model_waits WHERE message_id = :message_id

-- name: delete_model_waits(before)
DELETE FROM model_waits WHERE day < :before RETURNING message_id

-- name: forget_model_spenders(before)
UPDATE model_calls SET share_sender = NULL, share_domain = NULL WHERE share_sender IS NOT NULL AND day < :before
RETURNING id

-- name: settle_model_spend(day, difference)
UPDATE model_spend SET micros = micros + :difference WHERE day = :day

-- name: select_model_spend(day)
SELECT micros, calls FROM model_spend WHERE day = :day

-- name: sum_message_cost(message_id)
SELECT COALESCE(SUM(COALESCE(cost_micros, reserved_micros)), 0) FROM model_calls WHERE message_id = :message_id

-- name: insert_model_call(id, account_id, message_id, provider, model, prompt_version, day, reserved_micros, backfill_job_id, backfill_day, share_sender, share_domain, now)
INSERT INTO model_calls (id, account_id, message_id, provider, model, prompt_version, state, day, reserved_micros,
    backfill_job_id, backfill_day, share_sender, share_domain, started_at)
VALUES (:id, :account_id, :message_id, :provider, :model, :prompt_version, 'started', :day, :reserved_micros,
    :backfill_job_id, :backfill_day, :share_sender, :share_domain, :now)

-- name: end_model_call(id, state, input_tokens, output_tokens, cost_micros, latency_ms, error, now)
UPDATE model_calls
SET state = :state, input_tokens = :input_tokens, output_tokens = :output_tokens,
    cost_micros = COALESCE(:cost_micros, reserved_micros), latency_ms = :latency_ms, error = :error, ended_at = :now
WHERE id = :id AND state = 'started'
RETURNING day, reserved_micros, cost_micros, backfill_job_id, backfill_day

-- name: fail_left_model_calls(before, error, now)
UPDATE model_calls SET state = 'failed', cost_micros = reserved_micros, error = :error, ended_at = :now
WHERE state = 'started' AND started_at < :before
RETURNING id

-- name: average_model_tokens(most)
-- All calls about a message count, also those that were asked again.
SELECT count(*), COALESCE(AVG(sent), 0), COALESCE(AVG(received), 0) FROM (
    SELECT SUM(input_tokens) AS sent, SUM(output_tokens) AS received FROM model_calls
    WHERE message_id IN (
        SELECT message_id FROM model_calls WHERE state = 'answered' AND input_tokens > 0
        ORDER BY day DESC, started_at DESC LIMIT :most
    ) AND state IN ('answered', 'refused') GROUP BY message_id
) AS per_message

-- part: calls
SELECT id, account_id, message_id, provider, model, prompt_version, state, input_tokens, output_tokens,
    reserved_micros, cost_micros, latency_ms, error, started_at, ended_at

-- name: select_model_calls_of(message_id)
{calls} FROM model_calls WHERE message_id = :message_id ORDER BY started_at, id

-- name: select_last_model_calls(most)
{calls} FROM model_calls ORDER BY day DESC, started_at DESC, id DESC LIMIT :most
