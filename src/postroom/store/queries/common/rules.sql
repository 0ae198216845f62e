-- name: insert_rule(id, name, description, scope, scope_ref, priority, conditions_json, action_type, parameters_json, mode, needs_approval, enabled, disabled_reason, continues, confirmed_hash, origin, now)
INSERT INTO rules (id, name, description, scope, scope_ref, priority, conditions_json, action_type, parameters_json,
    mode, needs_approval, enabled, disabled_reason, continues, confirmed_hash, origin, created_at, updated_at)
VALUES (:id, :name, :description, :scope, :scope_ref, :priority, :conditions_json, :action_type, :parameters_json,
    :mode, :needs_approval, :enabled, :disabled_reason, :continues, :confirmed_hash, :origin, :now, :now)
ON CONFLICT (name) DO NOTHING RETURNING id

-- name: update_rule(id, version, name, description, scope, scope_ref, priority, conditions_json, action_type, parameters_json, mode, needs_approval, enabled, disabled_reason, continues, confirmed_hash, now)
UPDATE rules SET name = :name, description = :description, scope = :scope, scope_ref = :scope_ref,
    priority = :priority, conditions_json = :conditions_json, action_type = :action_type,
    parameters_json = :parameters_json, mode = :mode, needs_approval = :needs_approval, enabled = :enabled,
    disabled_reason = :disabled_reason, continues = :continues, confirmed_hash = :confirmed_hash, version = version + 1, updated_at = :now
WHERE id = :id AND version = :version RETURNING id

-- name: select_enabled_rules()
SELECT id, name, scope, scope_ref, priority, conditions_json, action_type, parameters_json, mode, needs_approval
FROM rules WHERE enabled ORDER BY priority, id

-- part: rule
id, name, description, scope, scope_ref, priority, conditions_json, action_type AS action, parameters_json, mode,
    enabled, disabled_reason, needs_approval, continues, confirmed_hash, origin, version, created_at, updated_at

-- name: select_rules()
SELECT {rule} FROM rules ORDER BY priority, id

-- name: select_rule_named(name)
SELECT {rule} FROM rules WHERE name = :name

-- name: select_rule(id)
SELECT {rule} FROM rules WHERE id = :id

-- name: select_rule_versions()
SELECT id, version FROM rules

-- name: count_rules()
SELECT count(*) FROM rules

-- name: disable_rule(id, reason, disabled, now)
UPDATE rules SET enabled = :disabled, disabled_reason = :reason, version = version + 1, updated_at = :now
WHERE id = :id AND enabled RETURNING name

-- name: switch_rule(id, version, enabled, reason, confirmed_hash, now)
UPDATE rules SET enabled = :enabled, disabled_reason = :reason, confirmed_hash = :confirmed_hash, version = version + 1,
    updated_at = :now
WHERE id = :id AND version = :version RETURNING id

-- name: forget_confirmation(id)
UPDATE rules SET confirmed_hash = NULL WHERE id = :id

-- name: confirm_rule(id, version, confirmed_hash, now)
UPDATE rules SET confirmed_hash = :confirmed_hash, version = version + 1, updated_at = :now
WHERE id = :id AND version = :version RETURNING id

-- name: select_risky_rules(action_types)
-- Rules in use that may send or delete mail; those of several actions are looked at one by one.
SELECT {rule} FROM rules WHERE enabled AND mode = 'active' AND action_type {= ANY(:action_types::text[])}
ORDER BY priority, id

-- name: set_rule_origin(id, origin)
UPDATE rules SET origin = :origin WHERE id = :id

-- name: delete_rule(id)
DELETE FROM rules WHERE id = :id

-- name: insert_model_rule(id, name, scope, scope_ref, position, text, mode, enabled, now)
INSERT INTO model_rules (id, name, scope, scope_ref, position, rule_text, mode, enabled, created_at, updated_at)
VALUES (:id, :name, :scope, :scope_ref, :position, :text, :mode, :enabled, :now, :now)

-- name: update_model_rule(id, seen_at, name, scope, scope_ref, position, text, mode, enabled, now)
UPDATE model_rules SET name = :name, scope = :scope, scope_ref = :scope_ref, position = :position,
    rule_text = :text, mode = :mode, enabled = :enabled, updated_at = :now
WHERE id = :id AND updated_at = :seen_at RETURNING id

-- name: delete_model_rule(id)
DELETE FROM model_rules WHERE id = :id RETURNING id

-- part: model_rules
SELECT id, name, scope, scope_ref, position, rule_text AS text, mode, enabled, created_at, updated_at

-- name: select_model_rules()
{model_rules} FROM model_rules ORDER BY position, id

-- name: select_enabled_model_rules(account, domain, sender)
{model_rules} FROM model_rules
WHERE enabled AND (scope = 'global' OR (scope = 'account' AND scope_ref = :account)
    OR (scope = 'domain' AND scope_ref = :domain) OR (scope = 'sender' AND scope_ref = :sender))
ORDER BY position, id

-- name: insert_direction(id, scope, scope_ref, position, content, enabled, now)
INSERT INTO directions (id, scope, scope_ref, position, content, enabled, created_at, updated_at)
VALUES (:id, :scope, :scope_ref, :position, :content, :enabled, :now, :now)

-- name: update_direction(id, seen_at, scope, scope_ref, position, content, enabled, now)
UPDATE directions SET scope = :scope, scope_ref = :scope_ref, position = :position, content = :content,
    enabled = :enabled, updated_at = :now
WHERE id = :id AND updated_at = :seen_at RETURNING id

-- name: delete_direction(id)
DELETE FROM directions WHERE id = :id RETURNING id

-- part: directions
SELECT id, scope, scope_ref, position, content, enabled, created_at, updated_at FROM directions

-- name: select_directions()
{directions} ORDER BY position, id

-- name: select_enabled_directions(account)
{directions} WHERE enabled AND (scope = 'global' OR scope_ref = :account) ORDER BY position, id

-- name: select_rules_mark()
SELECT count(*), COALESCE(sum(version), 0), max(updated_at) FROM rules WHERE enabled

-- name: select_rules_page(scope, state, priority, id, most)
SELECT {rule}, number
FROM (SELECT r.*, row_number() OVER (ORDER BY r.priority, r.id) AS number FROM rules r) AS numbered
WHERE (priority, id) > (:priority, :id) AND (:scope = '' OR scope = :scope) AND (:state = ''
    OR (:state = 'off' AND NOT enabled) OR (:state = 'shadow' AND enabled AND mode = 'shadow')
    OR (:state = 'on' AND enabled AND mode = 'active'))
ORDER BY priority, id LIMIT :most

-- name: count_rules_by_state()
SELECT CAST(count(*) AS bigint) AS all_rules, CAST(COALESCE(sum(CASE WHEN enabled THEN 0 ELSE 1 END), 0) AS bigint) AS off,
    CAST(COALESCE(sum(CASE WHEN enabled AND mode = 'shadow' THEN 1 ELSE 0 END), 0) AS bigint) AS shadow
FROM rules

-- name: count_rules_up_to(priority, id)
SELECT count(*) FROM rules WHERE (priority, id) <= (:priority, :id)

-- name: select_rule_hits(since)
SELECT name, hour, CAST(sum(count) AS bigint) AS count FROM rollups
WHERE hour >= :since AND measure = 'rule' AND queue = 'email' GROUP BY name, hour

-- name: select_rule_order()
SELECT id, name, priority, version FROM rules ORDER BY priority, id

-- name: set_rule_priority(id, version, priority)
UPDATE rules SET priority = :priority, version = version + 1 WHERE id = :id AND version = :version RETURNING id

-- name: select_last_hits(rows)
SELECT (r.value ->> 0){::uuid} AS id, (SELECT max(d.created_at) FROM decisions d WHERE d.rule_id = (r.value ->> 0){::uuid}) AS at
FROM {jsonb_array_elements(:rows::jsonb)} AS r
