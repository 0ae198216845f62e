-- name: add_outbound_service(rows, hour)
INSERT INTO outbound_service (hour, discipline, sender_id, mails, recipients)
SELECT :hour::timestamptz, e ->> 0, (e ->> 1)::bigint, (e ->> 2)::bigint, (e ->> 3)::bigint
FROM jsonb_array_elements(:rows::jsonb) AS e
ON CONFLICT (hour, discipline, sender_id)
DO UPDATE SET mails = outbound_service.mails + excluded.mails, recipients = outbound_service.recipients + excluded.recipients

-- name: add_outbound_times(rows, hour, shard)
INSERT INTO outbound_times (hour, measure, discipline, lane, bucket, shard, count, total_us)
SELECT :hour::timestamptz, e ->> 0, e ->> 1, e ->> 2, (e ->> 3)::bigint, :shard::bigint, (e ->> 4)::bigint, (e ->> 5)::bigint
FROM jsonb_array_elements(:rows::jsonb) AS e
ON CONFLICT (hour, measure, discipline, lane, bucket, shard)
DO UPDATE SET count = outbound_times.count + excluded.count, total_us = outbound_times.total_us + excluded.total_us
