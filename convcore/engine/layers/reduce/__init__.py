"""Sums over any axes."""
