"""Shapes and copies: reshape, slices, joins, splits, broadcasting, conversions."""
