-- part: of_recipients
-- The ids as an array too: a plan made while the table is small must be right when it has grown.
r.mail_id = ANY(ARRAY(SELECT (x ->> 0)::uuid FROM jsonb_array_elements(:rows::jsonb) AS x)) AND r.mail_id = (value ->> 0)::uuid

-- part: of_mails
m.id = ANY(ARRAY(SELECT (x ->> 0)::uuid FROM jsonb_array_elements(:rows::jsonb) AS x)) AND m.id = (value ->> 0)::uuid
