"""Softmax, log-softmax, and the negative log likelihood of classes."""
