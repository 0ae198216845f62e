"""What every mail connector does, whatever the provider."""
