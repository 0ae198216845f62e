-- name: upsert_connector(connector_type, endpoint_identity, instance_id, version, state, error, uptime_s, counters_json, checkpoint_json, sent_at, now)
-- A report older than the stored one changes nothing, unless the stored one is dated in the future: a clock
-- that was once wrong must not silence its connector for good.
INSERT INTO connectors (connector_type, endpoint_identity, instance_id, version, state, error, uptime_s, counters_json,
    checkpoint_json, first_seen_at, last_heartbeat_at, last_sent_at)
VALUES (:connector_type, :endpoint_identity, :instance_id, :version, :state, :error, :uptime_s, :counters_json,
    :checkpoint_json, :now, :now, :sent_at)
ON CONFLICT (endpoint_identity, connector_type, instance_id) DO UPDATE SET
    version = excluded.version, state = excluded.state, error = excluded.error, uptime_s = excluded.uptime_s,
    counters_json = excluded.counters_json, checkpoint_json = excluded.checkpoint_json,
    last_heartbeat_at = excluded.last_heartbeat_at, last_sent_at = excluded.last_sent_at
WHERE excluded.last_sent_at >= connectors.last_sent_at OR connectors.last_sent_at > excluded.last_heartbeat_at
RETURNING instance_id

-- part: connectors
SELECT connector_type, endpoint_identity, instance_id, version, state, error, uptime_s, counters_json, checkpoint_json,
    first_seen_at, last_heartbeat_at, last_sent_at
FROM connectors

-- name: select_connectors()
{connectors} ORDER BY endpoint_identity, connector_type, instance_id

-- name: select_connectors_of(endpoint_identity)
{connectors} WHERE endpoint_identity = :endpoint_identity ORDER BY connector_type, instance_id

-- name: prune_connectors(before)
DELETE FROM connectors WHERE last_heartbeat_at < :before RETURNING instance_id
