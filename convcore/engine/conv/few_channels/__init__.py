"""Convolutions of few input channels, as a net's first layer: tiles over packed input."""
