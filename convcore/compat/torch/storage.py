"""The classes of a tensor's memory, under PyTorch's path."""

from convcore._tensor.storage import TypedStorage as TypedStorage
from convcore._tensor.storage import UntypedStorage as UntypedStorage
