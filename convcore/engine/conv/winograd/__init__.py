"""Winograd's method: tiles are transformed, multiplied and transformed back."""
