"""Metrics and traces, brought to those who watch. Only here is OpenTelemetry's SDK."""
