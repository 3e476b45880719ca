"""Optimizer steps and gradient clipping, in place."""
