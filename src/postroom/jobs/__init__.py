"""The job engine: it knows how jobs are queued, run, rescued and pruned, and knows no job type."""
