"""Operating system services: a clock that never jumps, and private files."""
