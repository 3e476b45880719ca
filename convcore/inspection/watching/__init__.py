"""Watching a net: its calls by name, which are selected, and what is kept of their values."""
