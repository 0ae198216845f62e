-- name: select_last_hits(rows)
SELECT r.value ->> 0 AS id, (SELECT max(d.created_at) FROM decisions d WHERE d.rule_id = r.value ->> 0) AS at
FROM json_each(:rows) AS r
