-- name: lock_timeline()
SELECT instance_id, epoch, ticks, place, alive_at FROM timeline

-- name: lock_restore_check(account_id)
SELECT epoch, since, restored_at, checked_at FROM restore_checks WHERE account_id = :account_id

