-- name: select_sending_addresses(mail_id)
SELECT address FROM outbound_recipients WHERE mail_id = :mail_id AND state = 'sending' ORDER BY position

-- part: counted_results
(
    SELECT destination, result, bounce_class, count FROM outbound_results WHERE hour >= :since AND hour < :begin
    UNION ALL SELECT destination, result, bounce_class, count FROM outbound_results WHERE hour >= :end AND hour < :until
    UNION ALL SELECT destination, result, bounce_class, count FROM outbound_results_days WHERE day >= :begin AND day < :end
) AS counted

-- name: select_result_classes(since, begin, end, until)
-- The days from `begin` to `end` are summed up already.
SELECT result, bounce_class, CAST(sum(count) AS bigint) AS count FROM {counted_results}
GROUP BY result, bounce_class ORDER BY 3 DESC, result, bounce_class

-- name: select_destination_results(since, begin, end, until, most)
SELECT destination,
    CAST(sum(CASE WHEN result = 'sent' THEN count ELSE 0 END) AS bigint) AS sent,
    CAST(sum(CASE WHEN result = 'deferred' THEN count ELSE 0 END) AS bigint) AS deferred,
    CAST(sum(CASE WHEN result = 'bounced' THEN count ELSE 0 END) AS bigint) AS bounced,
    CAST(sum(CASE WHEN result = 'rejected' THEN count ELSE 0 END) AS bigint) AS rejected,
    CAST(sum(CASE WHEN result = 'expired' THEN count ELSE 0 END) AS bigint) AS expired
FROM {counted_results}
GROUP BY destination ORDER BY sum(count) DESC, destination LIMIT :most

-- name: add_outbound_results(rows, hour, shard)
INSERT INTO outbound_results (hour, destination, result, bounce_class, shard, count)
SELECT :hour{::timestamptz}, value ->> 0, value ->> 1, value ->> 2, :shard{::bigint}, (value ->> 3){::bigint}
FROM {jsonb_array_elements(:rows::jsonb)} AS e WHERE true
ON CONFLICT (hour, destination, result, bounce_class, shard) DO UPDATE SET count = outbound_results.count + excluded.count
