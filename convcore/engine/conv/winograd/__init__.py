"""Winograd's method: transform tiles, multiply them, and transform the products back."""
