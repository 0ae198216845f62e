"""What people read about simulations."""

ORDERS = {
    "alone": "alone, without the others",
    "fair": "the fair queue",
    "fifo": "first in, first out",
    "priority": "strict priority",
    "single-pass": "one pass over domains",
}
"""The orders in which mail can leave."""
SIMULATED = {
    "flood": "A flood: one tenant sends 10,000 mails just when ten small ones have something to say",
    "many-small": "Many small tenants beside one big one",
    "slow-destination": "A destination that answers after a minute",
    "newcomers": "Tenants that come and go beside two busy ones",
    "history": "Your own mail of the last {days} days (at most {most:,} mails)",
}
"""The mail that can be simulated."""
