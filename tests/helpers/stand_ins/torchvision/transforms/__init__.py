"""What pytorch-grad-cam imports to make a tensor of a photograph; the programs make their own."""

from torchvision.transforms import functional

__all__ = ["Compose", "Normalize", "ToTensor", "functional"]


class Compose:
    pass


class Normalize:
    pass


class ToTensor:
    pass
