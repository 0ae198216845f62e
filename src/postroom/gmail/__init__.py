"""Google's Gmail API and nothing of ours."""
