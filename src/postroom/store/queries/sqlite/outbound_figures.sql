-- name: add_outbound_service(rows, hour)
INSERT INTO outbound_service (hour, discipline, sender_id, mails, recipients)
SELECT :hour, value ->> 0, value ->> 1, value ->> 2, value ->> 3 FROM json_each(:rows) WHERE true
ON CONFLICT (hour, discipline, sender_id)
DO UPDATE SET mails = mails + excluded.mails, recipients = recipients + excluded.recipients

-- name: add_outbound_times(rows, hour, shard)
INSERT INTO outbound_times (hour, measure, discipline, lane, bucket, shard, count, total_us)
SELECT :hour, value ->> 0, value ->> 1, value ->> 2, value ->> 3, :shard, value ->> 4, value ->> 5 FROM json_each(:rows) WHERE true
ON CONFLICT (hour, measure, discipline, lane, bucket, shard)
DO UPDATE SET count = count + excluded.count, total_us = total_us + excluded.total_us
