"""Settings: how they are read, and what each section contains."""
