"""What Postroom asks of the operating system."""
