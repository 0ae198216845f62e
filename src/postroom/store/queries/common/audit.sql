-- name: insert_audit(id, now, actor, role, action, object_type, object_id, before_json, after_json, reason)
INSERT INTO audit (id, at, actor, role, action, object_type, object_id, before_json, after_json, reason)
VALUES (:id, :now, :actor, :role, :action, :object_type, :object_id, :before_json, :after_json, :reason)

-- name: select_audit(before_seq, most)
SELECT seq, id, at, actor, role, action, object_type, object_id, before_json, after_json, reason FROM audit
WHERE seq < :before_seq ORDER BY seq DESC LIMIT :most

-- name: select_audit_of_actor(before_seq, actor, most)
SELECT seq, id, at, actor, role, action, object_type, object_id, before_json, after_json, reason FROM audit
WHERE actor = :actor AND seq < :before_seq ORDER BY seq DESC LIMIT :most

-- name: select_audit_of_action(before_seq, action, most)
SELECT seq, id, at, actor, role, action, object_type, object_id, before_json, after_json, reason FROM audit
WHERE action = :action AND seq < :before_seq ORDER BY seq DESC LIMIT :most

-- name: select_audit_of_both(before_seq, actor, action, most)
SELECT seq, id, at, actor, role, action, object_type, object_id, before_json, after_json, reason FROM audit
WHERE actor = :actor AND action = :action AND seq < :before_seq ORDER BY seq DESC LIMIT :most

-- name: select_audit_of(object_type, object_id, most)
SELECT seq, id, at, actor, role, action, object_type, object_id, before_json, after_json, reason FROM audit
WHERE object_type = :object_type AND object_id = :object_id ORDER BY seq DESC LIMIT :most

-- name: select_audit_entry(id)
SELECT seq, id, at, actor, role, action, object_type, object_id, before_json, after_json, reason FROM audit
WHERE id = :id
