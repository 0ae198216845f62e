"""Mail: reading it, naming it, sorting it into tiers."""
