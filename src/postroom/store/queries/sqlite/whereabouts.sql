-- name: select_queues_of(ids)
SELECT DISTINCT queue FROM envelopes WHERE id IN (SELECT value FROM json_each(:ids))
