"""Hints for modules, their parameters, and optimizers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from convcore._hints.inputs import of_pytorch
from convcore._hints.words import nearest


def not_a_parameter(value: Any) -> str:
    """Say how to make a parameter of something else."""
    return of_pytorch(value) or "wrap it: nn.Parameter(tensor)"


# Methods that nets have in Keras and scikit-learn, and what does it here.
_METHODS = {
    "add": "net.append(layer) of a Sequential, or net.add_module(name, layer)",
    "fit": "train in a loop: loss(net(x), y).backward(); optimizer.step(); optimizer.zero_grad()",
    "get_weights": "net.state_dict()",
    "layers": "list(net.children())",
    "load": "net.load_state_dict(torch.load(file))",
    "load_weights": "net.load_state_dict(torch.load(file))",
    "predict": "call the net, net(x): under torch.no_grad(), after net.eval()",
    "save": "torch.save(net.state_dict(), file), or onnx.export(net, x, file) for other programs; "
    "torch.jit.trace and script return the net itself",
    "save_weights": "torch.save(net.state_dict(), file)",
    "set_weights": "net.load_state_dict(state)",
    "summary": "convcore.summary(net, x)",
    "weights": "net.parameters(), or net.state_dict() by name",
}


def module_method(name: str) -> str:
    """Say what does the work of a method that modules have in other libraries."""
    return _METHODS.get(name, "")


def parameter(value: Any, name: str) -> str:
    """Say how to replace a parameter."""
    return of_pytorch(value) or (
        f"wrap it: nn.Parameter({_article(value)}); or change the values only: "
        f"with torch.no_grad(): module.{name}.copy_(tensor)"
    )


def _article(value: Any) -> str:
    return "tensor" if hasattr(value, "requires_grad") else "torch.as_tensor(value)"


def not_a_module(value: Any) -> str:
    """Say what to add instead of something that is no module."""
    if foreign := of_pytorch(value):
        return foreign
    if isinstance(value, type):
        return f"that is the class: make a module of it, {value.__name__}()"
    if isinstance(value, list | tuple):
        return "unpack it: nn.Sequential(*layers)"
    if callable(value):
        return "a function has no place among modules: use the module, such as nn.ReLU()"
    return ""


def not_parameters(value: Any) -> str:
    """Say what an optimizer takes instead."""
    if foreign := of_pytorch(value):
        return foreign
    if hasattr(value, "parameters"):
        return "pass module.parameters()"
    if callable(value):
        return f"call it: module.{getattr(value, '__name__', 'parameters')}()"
    return "pass the tensors: module.parameters(), or list(dictionary.values())"


EMPTY_PARAMETERS = (
    "the module has no parameters, or they came from a generator that was used up before: "
    "call module.parameters() again. Layers in a Python list are not seen: use nn.ModuleList"
)
INPUTS_SECOND = "inputs come second, and then the file: export(net, x, path)"
ONE_TENSOR = "put it into a list: [tensor]"
NON_LEAF = (
    "it was computed from other tensors: optimize those, or make a leaf, "
    "x.detach().requires_grad_(), and compute with it"
)
NO_INPUT = "summary(model, (1, 3, 224, 224)) gives it an input of that shape"


def lone_shape(sizes: Sequence[int]) -> str:
    """Say which shape a net takes that runs with a batch, and was given one image's."""
    return f"the net takes a batch: summary(model, {(1, *sizes)})"


NO_SUPER = "call super().__init__() first in the module's __init__"


def no_forward(module: object) -> str:
    """Say which method may have been meant to be `forward`."""
    if type(module).__module__.startswith("convcore."):
        return "it only holds modules: call them one by one, or use nn.Sequential"
    found = nearest("forward", vars(type(module)))
    if found:
        return f"is {found!r} meant to be 'forward'?"
    return "define forward(self, x) in the class, indented as __init__ is"
