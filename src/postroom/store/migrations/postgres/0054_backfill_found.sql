-- The mail that a backfill brought in, by category and by the year in which it was sent (UTC).
CREATE TABLE backfill_found (
    job_id uuid NOT NULL REFERENCES backfill_jobs (id),
    category text NOT NULL,
    year bigint NOT NULL,
    messages bigint NOT NULL,
    PRIMARY KEY (job_id, category, year)
);
INSERT INTO backfill_found (job_id, category, year, messages)
SELECT b.job_id, c.category, CAST(extract(year FROM m.sent_at AT TIME ZONE 'UTC') AS bigint), count(*)
FROM backfill_mail b JOIN messages m ON m.id = b.message_id JOIN message_categories c ON c.message_id = m.id
GROUP BY 1, 2, 3;
