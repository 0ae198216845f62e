-- part: span
-- Which span of `step_s` seconds since then a time is in.
CAST((unixepoch(at) - unixepoch(:since)) / :step_s AS INTEGER)
