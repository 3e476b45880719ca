"""PyTorch's `SummaryWriter`: that of the package tensorboardX, which is to be installed."""

from convcore.utils.tensorboard.writer import SummaryWriter

__all__ = ["SummaryWriter"]
