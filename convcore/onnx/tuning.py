"""Loaded nets trained in part, `train_only`, and cut, `cut`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import translate

from convcore import Tensor, nn
from convcore.nn.modules.dropout import _DropoutNd
from convcore.onnx.errors import OnnxError
from convcore.onnx.graph import Graph, Step, nearest_names
from convcore.onnx.naming import quoted

# Operators that compute integers, through which no gradient passes.
_INTEGERS = frozenset(
    {
        *("ConvInteger", "DynamicQuantizeLinear", "MatMulInteger", "QLinearConv"),
        *("QLinearMatMul", "QuantizeLinear"),
    }
)


def train_only(net: Graph, select: str | Iterable[str]) -> list[str]:
    """Train the parameters whose names fit, and freeze all others.

    Modules that have trained parameters, and dropouts, are put in training mode; all others, such
    as frozen batch norms, in evaluation mode.  Call it again after ``net.eval()``.

    Parameters
    ----------
    net : Graph
    select : str or list of str
        Globs.  They are compared with the names of parameters, of nodes, and of the initializers
        that the parameters were made of, each without a ``/`` at its start.

    Returns
    -------
    list of str
        The names of the trained parameters.

    Raises
    ------
    ValueError
        No parameter fits a glob.
    OnnxError
        An operator of integers is between a trained parameter and the output.  QuantizeLinear
        followed by DequantizeLinear is allowed: its gradient is the straight-through estimator,
        zero where values are clipped.

    Examples
    --------
    >>> import onnx.parser
    >>> proto = onnx.parser.parse_model('''
    ...     <ir_version: 8, opset_import: ["" : 17]>
    ...     example (float[N, 2] x) => (float[N, 1] y)
    ...     <float[2] scale = {1, 2}, float[2, 1] w = {1, 1}> {
    ...         [body] h = Mul(x, scale)
    ...         [head] y = MatMul(h, w)
    ...     }''')
    >>> import convcore
    >>> net = convcore.onnx.load(proto)
    >>> train_only(net, "head")
    ['head.B']
    >>> net.body.B.requires_grad
    False
    """
    globs = [select] if isinstance(select, str) else list(select)
    names = _names(net)
    trained: set[Tensor] = set()
    for glob in globs:
        fits = re.compile(translate(glob.removeprefix("/"))).match
        fitting = [each for name in names if fits(name) for each in names[name]]
        if not fitting:
            raise ValueError(
                f"train_only(): no parameter has the name {glob!r}; {nearest_names(glob, names)}"
            )
        trained.update(fitting)
    _check_gradients(net, trained)
    net.eval()
    for parameter in net.parameters():
        parameter.requires_grad_(parameter in trained)
    for module in net.modules():
        own = any(each in trained for each in module.parameters(recurse=False))
        module.training = own or isinstance(module, _DropoutNd)
    return [path for path, parameter in net.named_parameters() if parameter.requires_grad]


def _names(net: Graph) -> dict[str, list[nn.Parameter]]:
    """Return the parameters by all the names that they can be selected by."""
    found: dict[str, list[nn.Parameter]] = {}
    for path, parameter in net.named_parameters(remove_duplicate=False):
        for name in (path, *net.initializers.get(path, ())):
            found.setdefault(name.removeprefix("/"), []).append(parameter)
    for node, module in net.nodes.items():
        if own := list(module.parameters()):
            found.setdefault(node.removeprefix("/"), []).extend(own)
    return found


def _check_gradients(net: Graph, trained: set[Tensor]) -> None:
    """Raise OnnxError if an operator of integers takes what trained parameters computed."""
    takers: dict[str, list[str]] = {}
    for step in net.steps:
        for name in step.inputs:
            takers.setdefault(name, []).append(_op_type(net, step))
    reached: set[str] = set()
    for step in net.steps:
        module = net.get_submodule(step.module)
        is_reached = not reached.isdisjoint(step.inputs)
        if is_reached and _op_type(net, step) in _INTEGERS and not _is_straight(net, step, takers):
            raise OnnxError(
                f"train_only(): {getattr(module, 'description', step.module)} computes integers, "
                "through which no gradient passes: train what follows it, or load a float model"
            )
        if is_reached or any(each in trained for each in module.parameters()):
            reached.update(step.outputs)


def _op_type(net: Graph, step: Step) -> str:
    return getattr(net.get_submodule(step.module), "op_type", "")


def _is_straight(net: Graph, step: Step, takers: dict[str, list[str]]) -> bool:
    """Return whether a step is QuantizeLinear to a Tensor dtype, read by DequantizeLinear only."""
    kinds = {kind for name in step.outputs for kind in takers.get(name, ())}
    zero = net.constants.get(step.inputs[2]) if len(step.inputs) > 2 else None
    is_tensor = isinstance(zero, Tensor | None)
    return _op_type(net, step) == "QuantizeLinear" and kinds == {"DequantizeLinear"} and is_tensor


def cut(net: Graph, outputs: str | Iterable[str], inputs: str | Iterable[str] = ()) -> Graph:
    """Return the part of a loaded net that computes the named outputs; modules are shared.

    Training, replacing or hooking a module affects both nets.

    Parameters
    ----------
    net : Graph
    outputs : str or list of str
        Names of tensors, or of nodes, which stand for their outputs: what the part returns.
    inputs : str or list of str, optional
        Such names: what the part takes.  Default: the inputs of the net that it needs.

    Raises
    ------
    ValueError
        The net has no such tensor or node, or the part needs other inputs too.

    Examples
    --------
    >>> import onnx.parser
    >>> proto = onnx.parser.parse_model('''
    ...     <ir_version: 8, opset_import: ["" : 17]>
    ...     example (float[2] x) => (float[2] y) {
    ...         a = Neg(x)
    ...         b = Abs(a)
    ...         y = Sqrt(b)
    ...     }''')
    >>> import convcore
    >>> net = convcore.onnx.load(proto)
    >>> cut(net, "a")
    Graph(
      (Neg_0): Neg()
    )
    >>> cut(net, "y", inputs="a")(convcore.tensor([-4.0, 9.0]))
    tensor([2., 3.])
    """
    ends, starts = _values(net, outputs, "outputs"), _values(net, inputs, "inputs")
    needed = set(ends.values()) - set(starts.values())
    used, steps = set(needed), []
    for step in reversed(net.steps):
        if needed.intersection(step.outputs):
            steps.append(step)
            needed.difference_update(step.outputs)
            needed.update(set(filter(None, step.inputs)).difference(starts.values()))
            used |= needed | {value for _, value in step.replaceable}
    folded = []
    for each in reversed(net._folded):
        if not used.isdisjoint(each.outputs):
            folded.append(each)
            used.update(each.inputs)
    taken = list(starts.values()) or [name for name in net.input_names if name in needed]
    if missing := [name for name in net.input_names if name in needed - set(taken)]:
        raise ValueError(f"cut(): the part needs {', '.join(map(quoted, missing))} too, as inputs")
    part = Graph(
        {step.module: net.get_submodule(step.module) for step in reversed(steps)},
        steps[::-1],
        taken,
        list(ends),
        {name: value for name, value in net.constants.items() if name in used},
        list(ends.values()),
        [name for name in net.optional_names if name in used],
        folded[::-1],
    )
    part._node_names = {name: net._node_names.get(name, "") for name in part._modules}
    part.initializers, part.metadata = net.initializers, net.metadata
    part.training = net.training
    return part


def _values(net: Graph, names: str | Iterable[str], argument: str) -> dict[str, str]:
    """Return {tensor name: value name}; the name of a node stands for its outputs."""
    tensors = {name: name for name in (*net.input_names, *net.constants)}
    nodes: dict[str, tuple[str, ...]] = {}
    for step in net.steps:
        own = tuple(filter(None, step.outputs))
        tensors.update(zip(own, own, strict=True))
        for name in (step.module, net._node_names.get(step.module, "")):
            nodes.setdefault(name, own)
    tensors |= zip(net.output_names, net._results, strict=True)
    found: dict[str, str] = {}
    for name in [names] if isinstance(names, str) else names:
        if name in tensors:
            found[name] = tensors[name]
        elif name in nodes:
            found.update(zip(nodes[name], nodes[name], strict=True))
        else:
            near = nearest_names(name, [*nodes, *tensors])
            raise ValueError(f"cut(): {argument} has {quoted(name)}, which is no tensor; {near}")
    return found
