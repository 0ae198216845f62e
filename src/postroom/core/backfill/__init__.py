"""Backfill: fetching a chosen part of the archive, under a cap."""
