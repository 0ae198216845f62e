"""Stand-ins for the demo and the tests: emulators of Gmail, Discord and language models, and sample mail."""
