-- name: lock_timeline()
SELECT instance_id, epoch, ticks, place, alive_at FROM timeline
