"""One file per job type: each takes a job and calls a service."""
