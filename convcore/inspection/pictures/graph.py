"""Pictures of nets as graphs: boxes for layers and blocks, arrows for what flows between them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from convcore import nn
from convcore._errors import hinted
from convcore._errors.hints import input_of_sizes
from convcore._tensor import Tensor
from convcore.autograd.grad_mode import no_grad
from convcore.inspection._models import check_model
from convcore.inspection._optimized import refuse_optimized
from convcore.inspection.attribution._run import explaining
from convcore.inspection.pictures._graphviz import drawn, source_of
from convcore.inspection.reporting._calls import Call, calls_of
from convcore.inspection.reporting._facts import fresh, times_of
from convcore.inspection.reporting._graph import draw
from convcore.inspection.reporting._style import GRAPH_STYLE
from convcore.inspection.watching.selection import nearest_of
from convcore.serialization.replacing import writing


class Graph:
    """A net's graph, as `graph` makes it; notebooks show it.

    Attributes
    ----------
    svg : str
        The picture, drawn by convcore: light or dark as the reader's screen is.
    source : str
        The same boxes and arrows in Graphviz's language.
    """

    def __init__(self, svg: str, source: str) -> None:
        self.svg = svg
        self.source = source

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the picture to a file.

        Parameters
        ----------
        path : path
            Ends in ``.svg``, drawn by Graphviz if its program ``dot`` is there, else by convcore;
            in ``.pdf`` or ``.png``, which need Graphviz; or in ``.dot`` or ``.gv``, its source.

        Raises
        ------
        ValueError
            Another suffix, or one that needs Graphviz, which is not there.
        RuntimeError
            Graphviz failed.
        OSError
            The file cannot be written.
        """
        target = Path(path)
        content = self._content(target.suffix.lower())
        with writing(target) as file:
            file.write(content)
        return target

    def _content(self, suffix: str) -> bytes:
        if suffix in (".dot", ".gv"):
            return self.source.encode()
        if suffix not in (".svg", ".pdf", ".png"):
            raise ValueError(f"path must end in .svg, .pdf, .png, .dot or .gv, got {suffix!r:.99}")
        program = shutil.which("dot")
        if program is not None:
            return drawn(program, self.source, suffix[1:])
        if suffix == ".svg":
            return self.svg.encode()
        raise ValueError(f"path: {suffix} needs Graphviz's program 'dot'; .svg is drawn without")

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"<Graph of {self.source.count('fillcolor')} boxes: save('net.svg') writes it>"


def graph(
    model: nn.Module, input: Any, *, inside: str = "", depth: int = 1, times: bool = False
) -> Graph:
    """Draw a net as a graph: layers, blocks, and what flows between them, as SVG.

    Parameters
    ----------
    model : Module
        Called once, in evaluation mode; its modes, hooks and gradients are as before afterwards.
    input : Tensor, or tuple of all arguments
        What it is called with.
    inside : str
        A call with calls inside, by its name in `capture`, such as ``"layer1.0"``, to draw what is
        inside it. Default: the whole net.
    depth : int
        How many levels of blocks are drawn: with 1, a block is one box.
    times : bool
        Whether to measure times, of both passes, and show them.

    Returns
    -------
    Graph

    Raises
    ------
    TypeError, ValueError
        The arguments are none of the above.
    KeyError
        No call has the name; the message has the nearest.
    RuntimeError
        ``model`` was made by `optimize_for_inference`: draw the net that it was made of.

    Notes
    -----
    A box has the layer's name and type, the shape of its result, the bytes of new results,
    multiply-adds (MACs), and its time. Blocks that repeat one another are one box. A bar shows the
    multiply-adds beside those of the box that has most. Boxes stand in the order of what flows
    between them, chains in one piece; the calls' order is that of `summary`.

    Examples
    --------
    >>> import convcore
    >>> from convcore.inspection import pictures
    >>> net = convcore.models.resnet8()
    >>> pictures.graph(net, convcore.rand(1, 3, 32, 32))
    <Graph of 9 boxes: save('net.svg') writes it>
    """
    check_model(model)
    given = input if isinstance(input, tuple) else (input,)
    if not any(isinstance(one, Tensor) for one in given):
        raise hinted(
            TypeError(f"input must be a Tensor or a tuple with one, got {type(input).__name__}"),
            input_of_sizes(given),
        )
    if type(depth) is not int or depth < 1:
        raise ValueError(f"depth must be a number of levels above 0, got {depth!r:.99}")
    refuse_optimized(model, "graph")
    given = fresh(given)

    def run() -> Any:
        return model(*given)

    with explaining(model), no_grad():
        calls = calls_of(model, run)
    number = _number_of(calls, inside)
    seconds: dict[str, float] = {}
    if times:
        _, forward, backward = times_of(model, given, run)
        seconds = {name: forward[name] + backward[name] for name in forward}
    svg = draw(calls, number, seconds, set(), depth=depth, style=GRAPH_STYLE)
    return Graph(svg, source_of(calls, number, seconds, depth))


def _number_of(calls: Sequence[Call], name: str) -> int:
    """Return the number of a call with calls inside."""
    if not name:
        return 0
    blocks = {call.name: call.number for call in calls if call.children}
    if name not in blocks:
        raise KeyError(f"inside: no call with calls inside is {name!r}{nearest_of(name, blocks)}")
    return blocks[name]
