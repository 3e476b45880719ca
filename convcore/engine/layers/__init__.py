"""Layers on arrays: pooling, normalisation, activations, padding, interpolation, optimizers."""
