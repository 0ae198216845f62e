-- part: of_recipients
r.mail_id = value ->> 0

-- part: of_mails
m.id = value ->> 0
