"""Backfill: walks a chosen part of the archive backward, and ingests it below live mail."""
