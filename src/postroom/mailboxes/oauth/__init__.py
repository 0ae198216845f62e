"""OAuth for a program on the user's own machine, whoever issues the tokens: consent, exchange, refresh."""
