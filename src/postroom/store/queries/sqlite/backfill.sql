-- part: ended_jobs
job_rows
