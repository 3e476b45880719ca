"""The names of torchvision that pytorch-grad-cam and zennit import at their start."""

from torchvision import models, transforms

__all__ = ["models", "transforms"]
