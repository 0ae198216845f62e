"""What tests share: a real PostgreSQL, real processes, a clock that is moved by hand."""
