"""Which features matter, and how rules use it."""
