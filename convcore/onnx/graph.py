"""Nets made of ONNX graphs: nodes are submodules, called in the graph's order."""

from __future__ import annotations

import difflib
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from convcore import Tensor, nn
from convcore._tensor.reads import is_static, mark_static
from convcore.func import functional_call
from convcore.onnx.errors import FAULTS_OF_NODES, OnnxError, error_of_node, is_own_error
from convcore.onnx.naming import distinct, identifier, quoted
from convcore.onnx.nodes import Node, Operation
from convcore.onnx.reading import Source
from convcore.onnx.values import Value, value_of


class Step(NamedTuple):
    """One call of a module.

    Attributes
    ----------
    module : str
        Its name.
    inputs, outputs : tuple of str
        Names of values.
    replaceable : tuple of (str, str)
        Names of the module's parameters and buffers, each with the name of a value that the caller
        may give in its place.
    released : tuple of str
        Names of values that no later step needs.
    """

    module: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    replaceable: tuple[tuple[str, str], ...] = ()
    released: tuple[str, ...] = ()


class Folded(NamedTuple):
    """A node computed at load time, again where the caller replaces one of its inputs."""

    operation: Operation
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


class Nodes(Mapping[str, nn.Module]):
    """The modules of a net's nodes by the names of the nodes.

    Assigning to a name replaces the node's module, which is called with the inputs of the node that
    are not weights.
    """

    def __init__(self, places: Mapping[str, tuple[nn.Module, str]]) -> None:
        self._places = places

    def __getitem__(self, name: str) -> nn.Module:
        graph, key = self._place(name)
        return graph.get_submodule(key)

    def __setitem__(self, name: str, module: nn.Module) -> None:
        graph, key = self._place(name)
        if not isinstance(module, nn.Module):
            raise TypeError(
                f"nodes[{name!r}]: a node is replaced by a Module, got {type(module).__name__}"
            )
        graph.add_module(key, module)

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __repr__(self) -> str:
        return repr(dict(self))

    def _place(self, name: str) -> tuple[nn.Module, str]:
        if name in self._places:
            return self._places[name]
        raise KeyError(f"no node has the name {name!r}; {nearest_names(name, self)}")


def nearest_names(name: str, names: Iterable[str]) -> str:
    """Return words about the names that are most like one, or about the first ones."""
    names = list(names)
    near = difflib.get_close_matches(str(name), names, 3) or names[:3]
    return f"there are {', '.join(map(quoted, near))}"


class Graph(nn.Module):
    """A net made of an ONNX graph.

    Every node is a submodule under its name in the graph (``naming.py`` has the rule), so that
    hooks, ``get_submodule`` and ``named_parameters`` work as for any net.  Weights are parameters
    of the node that uses them.

    Parameters
    ----------
    modules : dict of str to Module
        By name, in the order of the steps.
    steps : sequence of Step
    inputs, outputs : sequence of str
        Names in the graph.
    constants : dict of str to value
        What nodes take besides inputs, weights and other nodes' outputs.
    results : sequence of str, optional
        Names of the outputs' values, where they are others than the outputs' names.
    optional : sequence of str
        Names of inputs that have a default among the constants.
    folded : sequence of Folded
        Computed from these defaults.

    Attributes
    ----------
    input_names, output_names : tuple of str
        The graph's own names, in order.
    optional_names : tuple of str
        Of inputs with a default, which forward takes after the others.
    nodes : mapping of str to Module
        The nodes' modules by the names that the file has.
    initializers : dict of str to tuple of str
        The initializers that each parameter was made of, by the parameter's name.
    metadata : dict of str to str
        What the model's file says of it besides the graph: classes' names, an author.
    captured_names : tuple of str
        Of a graph inside a node: what it uses of the graphs around it, which forward takes after
        the inputs.
    """

    captured_names: tuple[str, ...] = ()
    _source: Source | None = None  # of a net that `load` made

    def __init__(
        self,
        modules: Mapping[str, nn.Module],
        steps: Sequence[Step],
        inputs: Sequence[str],
        outputs: Sequence[str],
        constants: Mapping[str, Value],
        results: Sequence[str] | None = None,
        optional: Sequence[str] = (),
        folded: Sequence[Folded] = (),
    ) -> None:
        super().__init__()
        for name, module in modules.items():
            self.add_module(name, module)
        self.input_names, self.output_names = tuple(inputs), tuple(outputs)
        self.metadata: dict[str, str] = {}
        self.initializers: dict[str, tuple[str, ...]] = {}
        self._node_names = {k: getattr(each, "onnx_name", "") for k, each in modules.items()}
        self.constants = dict(constants)
        _mark(self.constants.values())
        self.optional_names, self._folded = tuple(optional), tuple(folded)
        self._results = tuple(outputs if results is None else results)
        self.steps = with_releases(steps, self._results)

    @property
    def nodes(self) -> Nodes:
        """The modules of nodes by the names that nodes have in the file.

        Of those in branches, loops and functions too.  A node without a name, or with that of an
        earlier one, has its module's path.  What was computed when the net was loaded has none.
        ``net.nodes["fc"] = nn.Linear(512, 3)`` replaces the module of a node.
        """
        found: dict[str, tuple[nn.Module, str]] = {}
        for path, graph in self.named_modules():
            for name, _ in graph.named_children() if isinstance(graph, Graph) else ():
                own = graph._node_names.get(name, "")  # also where another module is in its place
                place = f"{path}.{name}" if path else name
                found[own if own and own not in found else place] = graph, name
        return Nodes(found)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return the graph's output, or a tuple of them.

        Parameters
        ----------
        *args, **kwargs
            The graph's inputs, in order or by name (made a Python identifier): tensors or arrays.

        Raises
        ------
        TypeError
            An input is missing, unknown or given twice.
        """
        results = self.run(self._bound(args, kwargs))
        return results[0] if len(results) == 1 else tuple(results)

    def run(self, given: Mapping[str, Value]) -> list[Value]:
        """Return all outputs for values by their names in the graph."""
        values = {**self.constants, **given}
        replaced = given.keys() & self.optional_names if self.optional_names else set()
        if replaced:
            values |= self._folded_again(values, replaced)
        for name, inputs, outputs, replaceable, released in self.steps:
            module: Any = self._modules[name]  # of any class, once layers were fused
            taken = [values[each] if each else None for each in inputs]
            try:
                if replaced and (own := {k: values[v] for k, v in replaceable if v in replaced}):
                    result = _call_with(name, module, own, taken)
                else:
                    result = module(*taken)
            except FAULTS_OF_NODES as error:
                if not is_own_error(module, error):
                    raise
                node = getattr(module, "description", "") or f"node {quoted(name)}"
                raise error_of_node(node, error) from error
            results = (result,) if len(outputs) == 1 else result
            if _gives_static(getattr(module, "op_type", ""), taken):
                _mark(results)
            values.update(zip(outputs, results, strict=False))
            for each in released:
                del values[each]
        # A constant is the model's own: what is done to a result must not change it.
        return [
            values[name].clone() if isinstance(self.constants.get(name), Tensor) else values[name]
            for name in self._results
        ]

    def _folded_again(self, values: Mapping[str, Value], replaced: set[str]) -> dict[str, Value]:
        """Return the values that follow from replaced constants, and add their names to those."""
        new: dict[str, Value] = {}
        known = ChainMap(new, dict(values))
        for operation, inputs, outputs in self._folded:
            if replaced.intersection(inputs):
                taken = [known[each] if each else None for each in inputs]
                try:
                    result = operation(*taken)
                except FAULTS_OF_NODES as error:
                    raise error_of_node(operation.description, error) from error
                new.update(zip(outputs, (result,) if len(outputs) == 1 else result, strict=False))
                replaced.update(outputs)
        return new

    def _bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Value]:
        taken = (*self.input_names, *self.captured_names, *self.optional_names)
        if len(args) > len(taken):
            raise TypeError(f"forward() takes the {len(taken)} inputs {taken}, got {len(args)}")
        given = dict(zip(taken, args, strict=False))
        names = dict(zip(distinct(map(identifier, taken)), taken, strict=True))
        for key, value in kwargs.items():
            name = names.get(key)
            if name is None or name in given:
                reason = "unknown" if name is None else "given twice"
                raise TypeError(f"forward(): input {key!r} is {reason}; inputs are {list(names)}")
            given[name] = value
        needed = taken[: len(taken) - len(self.optional_names)]
        missing = [key for key, name in names.items() if name in needed and name not in given]
        if missing:
            raise TypeError(f"forward(): missing inputs {missing}")
        return {
            name: value_of(value) if isinstance(value, np.ndarray) else value
            for name, value in given.items()
            if value is not None or name in needed
        }


def _call_with(name: str, module: Any, tensors: dict[str, Value], inputs: Sequence[Value]) -> Any:
    """Call a node's module with other tensors in the place of its own."""
    if not isinstance(module, Node):
        raise OnnxError(
            f"node {quoted(name)}: an optimized net has its {', '.join(tensors)} built in"
        )
    return functional_call(module, tensors, tuple(inputs))


# What is known of a tensor without its elements.
_OF_SHAPES = frozenset({"Shape", "Size"})
# What is not the same each time.
RANDOM = frozenset(
    {
        *("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike"),
        *("RandomUniform", "RandomUniformLike"),
    }
)


def _gives_static(op_type: str, inputs: Sequence[Value]) -> bool:
    """Return whether what a node computes follows from constants and the shapes of the inputs."""
    if op_type in _OF_SHAPES:
        return True
    return op_type not in RANDOM and all(v is None or is_static(v) for v in inputs)


def _mark(values: Iterable[Value]) -> None:
    for value in values:
        if isinstance(value, Tensor):
            mark_static(value)


def with_releases(steps: Sequence[Step], kept: Iterable[str]) -> tuple[Step, ...]:
    """Return steps that let go of each result after its last use."""
    kept, computed = set(kept), {name for step in steps for name in step.outputs if name}
    seen: set[str] = set()
    result = []
    for step in reversed(steps):
        names = {name for name in (*step.inputs, *step.outputs) if name in computed}
        result.append(step._replace(released=tuple(sorted(names - seen - kept))))
        seen |= names
    return tuple(reversed(result))
