"""Depthwise convolutions: each channel has a kernel of its own."""
