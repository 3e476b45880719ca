"""Batch, group, instance and layer normalization, and moments of arrays."""
