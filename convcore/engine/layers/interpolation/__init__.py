"""Interpolation (resizing) of images, and other separable linear maps."""
