-- name: insert_audit(id, now, actor, role, action, object_type, object_id, before_json, after_json, reason)
INSERT INTO audit (id, at, actor, role, action, object_type, object_id, before_json, after_json, reason)
VALUES (:id, :now, :actor, :role, :action, :object_type, :object_id, :before_json, :after_json, :reason)

-- name: select_audit(before_seq, actor, action, most)
SELECT seq, id, at, actor, role, action, object_type, object_id, before_json, after_json, reason FROM audit
WHERE (CAST(:before_seq AS bigint) IS NULL OR seq < :before_seq)
    AND (CAST(:actor AS text) IS NULL OR actor = :actor)
    AND (CAST(:action AS text) IS NULL OR action = :action)
ORDER BY seq DESC LIMIT :most

-- name: select_audit_of(object_type, object_id, most)
SELECT seq, id, at, actor, role, action, object_type, object_id, before_json, after_json, reason FROM audit
WHERE object_type = :object_type AND object_id = :object_id ORDER BY seq DESC LIMIT :most
