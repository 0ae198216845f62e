-- part: sender_domain
substring(sender FROM '[^@]*$')
