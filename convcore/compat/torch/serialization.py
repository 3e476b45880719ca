"""What programs read off `torch.serialization` beside `load` and `save`."""

DEFAULT_PROTOCOL = 2  # of pickle
