"""Depthwise convolutions: one input channel per group."""
