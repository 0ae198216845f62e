"""Mail: parsing it, addresses and labels, and sorting it into tiers."""
