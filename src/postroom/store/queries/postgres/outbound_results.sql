-- name: add_outbound_results(rows, hour, shard)
INSERT INTO outbound_results (hour, destination, result, bounce_class, shard, count)
SELECT :hour::timestamptz, e ->> 0, e ->> 1, e ->> 2, :shard::bigint, (e ->> 3)::bigint
FROM jsonb_array_elements(:rows::jsonb) AS e
ON CONFLICT (hour, destination, result, bounce_class, shard) DO UPDATE SET count = outbound_results.count + excluded.count
