"""Demonstrations of ``convcore demo``: filters, feature maps and training, each with a picture."""
