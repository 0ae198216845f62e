"""Independent interpreters of foreign rules, and generators of such rules and of mail for them."""
