"""Counts over the sources that show whether the same thing is said more than once. `tests/house.py` prints them."""
