from torchvision.models import resnet

__all__ = ["resnet"]
