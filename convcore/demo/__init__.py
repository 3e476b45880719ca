"""Demonstrations: filter banks over photographs, and the gradient back to their pixels."""
