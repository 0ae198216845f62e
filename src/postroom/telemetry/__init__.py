"""Logs, traces and metrics, and how they leave the process."""
