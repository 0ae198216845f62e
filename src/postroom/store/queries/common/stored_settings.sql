-- name: select_stored_settings()
SELECT name, value_json, changed_by, changed_at FROM stored_settings ORDER BY name

-- name: delete_stored_setting(name)
DELETE FROM stored_settings WHERE name = :name

-- name: insert_stored_setting(name, value_json, changed_by, now)
INSERT INTO stored_settings (name, value_json, changed_by, changed_at) VALUES (:name, :value_json, :changed_by, :now)
ON CONFLICT (name) DO UPDATE SET value_json = excluded.value_json, changed_by = excluded.changed_by,
    changed_at = excluded.changed_at
