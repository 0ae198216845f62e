"""The front door: takes everything in, keeps it in tier order, and hands it on."""
