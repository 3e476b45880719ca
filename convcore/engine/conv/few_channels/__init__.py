"""Convolutions of few input channels, such as a net's first layer: tiles over packed input."""
