-- part: span
-- Which span of `step_s` seconds since then a time is in.
floor(extract(epoch FROM at - :since::timestamptz) / :step_s::integer)::integer
