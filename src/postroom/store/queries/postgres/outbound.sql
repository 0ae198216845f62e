-- part: addresses
json_agg(r.address ORDER BY r.position)

-- part: next_seq
DEFAULT

-- part: admitted_at
GREATEST(:not_before, :now)
