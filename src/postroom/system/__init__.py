"""Operating system services: a clock that never jumps, private files, and how HTTP is served."""
