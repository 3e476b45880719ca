"""A net as a graph of ops, read from the autograd graph of one run."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from convcore._tensor import Tensor
from convcore._tensor.reads import is_static
from convcore.autograd.node import AccumulateGrad, Node
from convcore.nn import Module

MARKER = "Watched"  # the name of an op at which values are watched: see points.py

# An output of a node, by its number.
Output = tuple[Node, int]
# An input of an op: a leaf or constant tensor, an output of another op, or neither.
Operand = Tensor | Output | None


@dataclass(frozen=True, slots=True, eq=False)
class Op:
    """An operation of a net, read from an autograd node or made of several.

    Attributes
    ----------
    name : str
        The node's without "Backward0": 'Relu', 'MaxPool2DWithIndices'.
    attributes : dict
        The operation's arguments by name, as `describe` gave them.
    inputs : tuple of Operand
    result : Output
        The output; the first of several.
    layers : tuple of str
        The names of the layers or nodes that it computes: see `LayerNames`.
    """

    name: str
    attributes: Mapping[str, Any]
    inputs: tuple[Operand, ...]
    result: Output
    layers: tuple[str, ...] = ()

    @property
    def function(self) -> str:
        """The name as a function's."""
        return function_name(self.name)


def reached(roots: Iterable[Node | None]) -> set[Node]:
    """Return the nodes that some nodes were computed from, and these; no leaf tensors'."""
    found: set[Node] = set()
    waiting = list(roots)
    while waiting:
        node = waiting.pop()
        if node is not None and node not in found and not isinstance(node, AccumulateGrad):
            found.add(node)
            waiting += [edge[0] for edge in node.next_functions]
    return found


class Constants:
    """What is the same in each run: a model's own tensors, static ones, and what is made of these.

    The autograd graph does not show tensors without a gradient, so it looks on while ops are
    recorded.

    Parameters
    ----------
    model : Module
    input : Tensor
        What the model is called with; requires a gradient.
    """

    def __init__(self, model: Module, input: Tensor) -> None:
        self._input = input
        self._own = {
            one
            for module in model.modules()
            for one in (*module._buffers.values(), *vars(module).values())
            if isinstance(one, Tensor)
        }
        self._given: dict[tuple[Node, int], Tensor] = {}
        self._made: dict[Output, Tensor] = {}
        self._varying: set[Node] = set()

    def note(self, node: Node, inputs: tuple[Any, ...], outputs: Any) -> None:
        """Look at an op that was just recorded."""
        if any([self._varies(node, *each) for each in enumerate(inputs)]):
            self._varying.add(node)
            return
        results = outputs if isinstance(outputs, tuple) else (outputs,)
        self._made.update({(node, number): one for number, one in enumerate(results)})

    def _varies(self, node: Node, number: int, tensor: Any) -> bool:
        """Return whether an op's input may be another in another run; keep it if it is not."""
        if not isinstance(tensor, Tensor):
            return False
        if tensor.requires_grad:
            return tensor is self._input or tensor.grad_fn in self._varying
        if tensor not in self:
            return True
        self._given[node, number] = tensor
        return False

    def __contains__(self, tensor: Tensor) -> bool:
        if tensor in self._own or is_static(tensor):
            return True
        return tensor._view is not None and tensor._view.base in self

    def given(self, node: Node, number: int) -> Tensor | None:
        """Return an input of an op, without a gradient, if it is a constant."""
        return self._given.get((node, number))

    def made(self, output: Output) -> Tensor | None:
        """Return an op's output if it was computed of constants and weights alone."""
        return self._made.get(output)


class LayerNames:
    """The names of the layers and functions of a net that operations are recorded for.

    A name is that of a node in an ONNX file, or the path of a module; for a function called in the
    ``forward`` of a module that is none of convcore's layers, the path and the function's name.

    Parameters
    ----------
    model : Module

    Attributes
    ----------
    inside : list of Module
        The modules that are called now, the innermost last.
    """

    def __init__(self, model: Module) -> None:
        self._paths = {module: path for path, module in model.named_modules()}
        self._names: dict[Node, str] = {}
        self.inside: list[Module] = []

    def enter(self, module: Module, args: tuple, kwargs: dict) -> None:
        """Forward pre-hook."""
        self.inside.append(module)

    def leave(self, module: Module, args: tuple, kwargs: dict, result: Any) -> None:
        """Forward hook."""
        self.inside.pop()

    def note(self, node: Node, inputs: tuple[Any, ...], outputs: Any) -> None:
        """Name an op that was just recorded."""
        module = self.inside[-1] if self.inside else None
        name = function_name(node.name())
        if module is None:
            self._names[node] = name
        elif is_own(module):
            self._names[node] = self._of_layer(module)
        else:
            self._names[node] = f"{self._paths.get(module, '')}.{name}".lstrip(".")

    def of(self, node: Node) -> tuple[str, ...]:
        """Return the names of what an op computes: of a convolution, all that is fused into it."""
        conv = node.attributes.get("layer")
        if conv is not None:
            return tuple(map(self._of_layer, conv.layers()))
        name = self._names.get(node)
        return () if name is None else (name,)

    def _of_layer(self, module: Any) -> str:
        return getattr(module, "onnx_name", "") or self._paths.get(module, "") or "(model)"


def is_own(module: Module) -> bool:
    """Return whether a module's class is one of convcore's layers, or a node of ONNX."""
    # torch is the name of classes in PyTorch's place: see compat/door.py.
    return type(module).__module__.startswith(_OWN)


_OWN = ("convcore.nn.", "torch.nn.", "convcore.onnx.nodes", "convcore.inference.layers")


def function_name(node: str) -> str:
    """Return a node's name as a function's: 'max_pool2d' for 'MaxPool2DWithIndicesBackward0'."""
    name = re.sub(r"^Prepacked|(WithIndices)?Backward\d*$|WithIndices$", "", node) or node
    name = re.sub(r"(\d)D", r"\1d", name)
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


class OpGraph:
    """The ops that tensors were computed by, oldest first, and who consumes what.

    Parameters
    ----------
    input : Tensor
        What they were computed from.
    ops : sequence of Op
        In an order in which they can be computed.
    results : sequence of Output
    constants : Constants

    Attributes
    ----------
    input : Tensor
    all : list of Op
    results : tuple of Output
    constants : Constants
    uses : Counter of Operand
        How often each operand is consumed; the net's caller consumes the results.
    """

    def __init__(
        self, input: Tensor, ops: Sequence[Op], results: Sequence[Output], constants: Constants
    ) -> None:
        self.input, self.all = input, list(ops)
        self.results, self.constants = tuple(results), constants
        self._of = {op.result[0]: op for op in ops}
        self._consumers: dict[Operand, list[Op]] = defaultdict(list)
        for op in ops:
            for operand in op.inputs:
                self._consumers[operand].append(op)
        self.uses = Counter(operand for op in ops for operand in op.inputs)
        self.uses.update(self.results)

    @classmethod
    def recorded(
        cls,
        input: Tensor,
        results: Sequence[Tensor],
        constants: Constants,
        markers: Iterable[Node] = (),
        names: LayerNames | None = None,
    ) -> OpGraph:
        """Return the ops that led from an input to results, with gradients recorded.

        All leaf tensors have to require one; constants looked on.  Ops that only led to
        ``markers`` are among them.  ``names`` looked on, too.
        """
        roots = [*(one.grad_fn for one in results), *markers]
        nodes = sorted(reached(roots), key=lambda node: node._sequence)
        ops = [
            Op(
                node.name().partition("Backward")[0],
                node.attributes,
                tuple(_operands(node, constants)),
                (node, 0),
                () if names is None else names.of(node),
            )
            for node in nodes
        ]
        return cls(input, ops, [(_node_of(one), one._output_nr) for one in results], constants)

    def is_computed(self, operand: Operand) -> bool:
        """Return whether an operand is the input, or computed from it or from weights."""
        return isinstance(operand, tuple) or operand is self.input

    def of(self, operand: Operand) -> Op | None:
        """Return the op whose output an operand is."""
        return self._of.get(operand[0]) if isinstance(operand, tuple) else None

    def only_consumer(self, operand: Operand) -> Op | None:
        """Return the only op that consumes an operand; None if there are several or none."""
        consumers = self.consumers(operand)
        return consumers[0] if self.uses[operand] == 1 and consumers else None

    def consumers(self, operand: Operand) -> list[Op]:
        """Return the ops that consume an operand; the net's caller is none."""
        return self._consumers.get(operand, [])


def _node_of(tensor: Tensor) -> Node:
    assert tensor.grad_fn is not None
    return tensor.grad_fn


def _operands(node: Node, constants: Constants) -> Iterator[Operand]:
    for number, (before, output) in enumerate(node.next_functions):
        if before is None:
            yield constants.given(node, number)
        elif isinstance(before, AccumulateGrad):
            yield before.variable
        else:
            made = constants.made((before, output))
            yield (before, output) if made is None else made
