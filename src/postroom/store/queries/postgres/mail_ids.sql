-- part: ends_within
right(id::text, 8) ~>=~ :first_end AND right(id::text, 8) ~<=~ :last_end
