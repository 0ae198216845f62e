"""The connectors, and what they fetch: filters, tiers, searches, and mail that was not taken."""
