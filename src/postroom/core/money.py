"""Money: counted in millionths of a US dollar, and shown in cents."""

MICROS_PER_CENT = 10_000
