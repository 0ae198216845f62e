"""Verbs of jobs: requested, claimed, ended, scheduled, listed and counted."""
