"""Commands about one net: its table, and what it makes of an input."""
