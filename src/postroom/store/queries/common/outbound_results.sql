-- name: select_sending_addresses(mail_id)
SELECT address FROM outbound_recipients WHERE mail_id = :mail_id AND state = 'sending' ORDER BY position

-- name: select_result_classes(since, until)
SELECT result, bounce_class, CAST(sum(count) AS bigint) AS count FROM outbound_results
WHERE hour >= :since AND hour < :until GROUP BY result, bounce_class ORDER BY 3 DESC, result, bounce_class

-- name: select_destination_results(since, until, most)
SELECT destination,
    CAST(sum(CASE WHEN result = 'sent' THEN count ELSE 0 END) AS bigint) AS sent,
    CAST(sum(CASE WHEN result = 'deferred' THEN count ELSE 0 END) AS bigint) AS deferred,
    CAST(sum(CASE WHEN result = 'bounced' THEN count ELSE 0 END) AS bigint) AS bounced,
    CAST(sum(CASE WHEN result = 'rejected' THEN count ELSE 0 END) AS bigint) AS rejected,
    CAST(sum(CASE WHEN result = 'expired' THEN count ELSE 0 END) AS bigint) AS expired
FROM outbound_results WHERE hour >= :since AND hour < :until
GROUP BY destination ORDER BY sum(count) DESC, destination LIMIT :most
