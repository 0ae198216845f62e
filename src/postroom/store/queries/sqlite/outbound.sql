-- part: addresses
json_group_array(r.address ORDER BY r.position)

-- part: next_seq
(SELECT COALESCE(max(seq), 0) + 1 FROM outbound_mail)

-- part: admitted_at
max(:not_before, :now)
