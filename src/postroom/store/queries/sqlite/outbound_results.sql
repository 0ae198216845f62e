-- name: add_outbound_results(rows, hour, shard)
INSERT INTO outbound_results (hour, destination, result, bounce_class, shard, count)
SELECT :hour, value ->> 0, value ->> 1, value ->> 2, :shard, value ->> 3 FROM json_each(:rows) WHERE true
ON CONFLICT (hour, destination, result, bounce_class, shard) DO UPDATE SET count = count + excluded.count
