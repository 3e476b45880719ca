"""Elementwise ops and activations."""
