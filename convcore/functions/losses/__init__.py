"""Loss functions, with their reductions."""
