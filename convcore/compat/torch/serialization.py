"""What programs read off `torch.serialization` beside `load` and `save`."""

DEFAULT_PROTOCOL = 2  # of pickle


class SourceChangeWarning(Warning):
    """Never raised: files hold tensors, and no source code."""
