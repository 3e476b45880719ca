"""Softmax, its logarithm, and the negative log likelihood of classes."""
