"""Logs, traces and metrics, and their export."""
