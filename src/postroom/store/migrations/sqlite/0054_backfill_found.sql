-- The mail that a backfill brought in, by category and by the year in which it was sent (UTC).
CREATE TABLE backfill_found (
    job_id TEXT NOT NULL REFERENCES backfill_jobs (id),
    category TEXT NOT NULL,
    year INTEGER NOT NULL,
    messages INTEGER NOT NULL,
    PRIMARY KEY (job_id, category, year)
) STRICT;
INSERT INTO backfill_found (job_id, category, year, messages)
SELECT b.job_id, c.category, CAST(substr(m.sent_at, 1, 4) AS INTEGER), count(*)
FROM backfill_mail b JOIN messages m ON m.id = b.message_id JOIN message_categories c ON c.message_id = m.id
GROUP BY 1, 2, 3;
