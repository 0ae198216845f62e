"""Everything that people may do or ask. Commands, pages and tools call this and decide nothing themselves."""
