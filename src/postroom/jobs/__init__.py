"""The job engine: runs, rescues, schedules and prunes jobs. It knows no job type."""
