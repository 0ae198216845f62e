-- part: sender_domain
sender_domain
