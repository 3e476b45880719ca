"""The classes of a tensor's memory, under PyTorch's path."""

from convcore._storage import TypedStorage as TypedStorage
from convcore._storage import UntypedStorage as UntypedStorage
