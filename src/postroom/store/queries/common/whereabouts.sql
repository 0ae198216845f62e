-- name: select_queues_of(ids)
SELECT DISTINCT queue FROM envelopes WHERE id {= ANY(:ids::uuid[])}
