"""The JSON API under `/api/v1`: what the pages read and do, for programs. One module for each noun.

An operation reads its arguments, calls `manage`, and returns a view as an answer. It decides nothing itself.
"""
