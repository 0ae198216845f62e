"""What the demo and the tests run on: an emulator of Gmail, and a fictional person's mail in it."""
