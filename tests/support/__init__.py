"""What the tests stand on: a real PostgreSQL, real processes, a clock that is moved by hand."""
