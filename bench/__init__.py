"""Every speed claim of the job engine, measured beside its peers in one run: `python -m bench`."""
