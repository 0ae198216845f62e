"""The pages: what Postroom shows its owner in a browser, live."""
