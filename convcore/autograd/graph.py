"""Graph nodes, multi-tensor gradient hooks and saved-tensor hooks, under PyTorch's path."""

from convcore.autograd.hooks import register_multi_grad_hook
from convcore.autograd.node import Node
from convcore.autograd.saved import saved_tensors_hooks

__all__ = ["Node", "register_multi_grad_hook", "saved_tensors_hooks"]
