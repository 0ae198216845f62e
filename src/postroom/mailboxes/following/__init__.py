"""The parts of a mail connector that do not depend on the provider."""
