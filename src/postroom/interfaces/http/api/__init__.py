"""The JSON API under `/api/v1`: what the pages read and do, for programs. One module for each noun.

An operation reads its arguments, calls `operations`, and returns a view. It decides nothing itself.
"""
