"""Elementwise operations and activations."""
