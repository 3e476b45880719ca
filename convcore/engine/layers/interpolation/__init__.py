"""Interpolation (resize) of images, and other separable maps."""
