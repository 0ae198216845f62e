"""Verbs of backfills: planned, estimated, carried out slice by slice, and charged."""
