-- part: ended_jobs
job_ends e JOIN job_bodies b ON b.seq = e.seq
