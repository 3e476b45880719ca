"""Windows of signals: what `torch.signal` has."""

from convcore.compat.torch.signal import windows as windows
