"""Commands about one net: its table, what it makes of an input, and its training."""
