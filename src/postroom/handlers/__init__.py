"""One file per job type: takes a job, calls a service."""
