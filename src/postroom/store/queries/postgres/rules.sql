-- name: select_last_hits(rows)
SELECT (e ->> 0)::uuid AS id, (SELECT max(d.created_at) FROM decisions d WHERE d.rule_id = (e ->> 0)::uuid) AS at
FROM jsonb_array_elements(:rows::jsonb) AS e
