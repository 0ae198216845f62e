-- part: ends_within
substr(id, -8) >= :first_end AND substr(id, -8) <= :last_end
