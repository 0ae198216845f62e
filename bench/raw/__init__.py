"""The floor under every engine: the same work in bare SQL, with no features at all."""
