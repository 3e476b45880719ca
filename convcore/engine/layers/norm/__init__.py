"""Batch, group, instance and layer norm, and moments of arrays."""
