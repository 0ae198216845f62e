-- part: ends_within
right(id::text, 8) ~>=~ :first_end AND right(id::text, 8) ~<=~ :last_end
-- part: failed_jobs
SELECT b.id FROM job_ends e JOIN job_bodies b USING (seq) WHERE e.state = 'failed' ORDER BY e.finished_at DESC LIMIT 50000
