"""The live pages that Postroom shows its owner in a browser."""
