-- name: insert_audit(id, now, actor, role, action, object_type, object_id, before_json, after_json, reason)
INSERT INTO audit (id, at, actor, role, action, object_type, object_id, before_json, after_json, reason)
VALUES (:id, :now, :actor, :role, :action, :object_type, :object_id, :before_json, :after_json, :reason)

-- part: entries
SELECT seq, id, at, actor, role, action, object_type, object_id, before_json, after_json, reason FROM audit

-- name: select_audit(before_seq, most)
{entries} WHERE seq < :before_seq ORDER BY seq DESC LIMIT :most

-- name: select_audit_of_actor(before_seq, actor, most)
{entries} WHERE actor = :actor AND seq < :before_seq ORDER BY seq DESC LIMIT :most

-- name: select_audit_of_action(before_seq, action, most)
{entries} WHERE action = :action AND seq < :before_seq ORDER BY seq DESC LIMIT :most

-- name: select_audit_of_both(before_seq, actor, action, most)
{entries} WHERE actor = :actor AND action = :action AND seq < :before_seq ORDER BY seq DESC LIMIT :most

-- name: select_audit_of(object_type, object_id, most)
{entries} WHERE object_type = :object_type AND object_id = :object_id ORDER BY seq DESC LIMIT :most

-- name: select_audit_entry(id)
{entries} WHERE id = :id
