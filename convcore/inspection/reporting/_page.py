"""The page of a report: its head, its parts in order, and the words that explain them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import convcore
from convcore._tensor import Tensor
from convcore.engine.runtime.errstate import quiet
from convcore.inspection.profiling._table import disturbance
from convcore.inspection.reporting import _charts, _images
from convcore.inspection.reporting._boxes import kinds_of_blocks
from convcore.inspection.reporting._facts import Facts
from convcore.inspection.reporting._graph import draw
from convcore.inspection.reporting._layers import layers
from convcore.inspection.reporting._style import POLICY, STYLE
from convcore.inspection.reporting._table import table
from convcore.inspection.reporting._text import (
    bytes_of,
    count,
    number,
    safe,
    seconds,
    shape,
    shapes,
)
from convcore.inspection.reporting._values import array_of

_MOST_CLASSES = 5
_MOST_MAPS = 6  # of a result that is drawn beside the input
_MOST_BLOCKS = 8  # kinds of blocks that are drawn beside the net
_PARTS = (
    ("answer", "Input and answer"),
    ("graph", "The net"),
    ("times", "Times"),
    ("gradients", "Gradients of the weights"),
    ("table", "All layers"),
    ("layers", "Each layer"),
)


def page(facts: Facts) -> str:
    """Return the whole page."""
    makers = {
        "answer": _answer,
        "graph": _graph,
        "times": _times,
        "gradients": _gradients,
        "table": lambda facts: _note_on_table(facts) + table(facts),
        "layers": lambda facts: _note_on_layers() + layers(facts),
    }
    parts = [(name, title, makers[name](facts)) for name, title in _PARTS]
    parts = [part for part in parts if part[2]]
    links = "".join(f'<a href="#{name}">{title}</a>' for name, title, _ in parts)
    body = "".join(
        f'<section id="{name}"><h2>{title}</h2>{text}</section>' for name, title, text in parts
    )
    return (
        f"{_head(facts.title)}<header><h1>{safe(facts.title)}</h1>{_totals(facts)}"
        f"{_verdict(facts)}</header><nav>{links}</nav><main>{body}</main>"
        f'<footer><p class="soft">Written by convcore {safe(convcore.__version__)}.</p></footer>'
        "</body></html>\n"
    )


def _head(title: str) -> str:
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{safe(title)}</title><link rel="icon" href="data:,"><style>{STYLE}</style>'
        "</head><body>"
    )


def _totals(facts: Facts) -> str:
    net = facts.calls[0]
    tensors = [*facts.model.parameters(), *facts.model.buffers()]
    found = [
        ("input", shapes(net.given)),
        ("result", shape(net.output)),
        ("parameters", count(net.parameters)),
        ("multiply-adds", count(net.multiply_adds)),
        ("of weights", bytes_of(sum(tensor.nbytes for tensor in tensors))),
        ("of results", bytes_of(net.bytes)),
    ]
    if facts.profile:
        rows = facts.profile.rows
        found.append(("forward", seconds(facts.forward.get("output", rows.forward))))
        found.append(("backward", seconds(facts.backward.get("output", rows.backward))))
    items = "".join(f"<li><b>{safe(value)}</b>{name}</li>" for name, value in found)
    return f'<ul class="totals">{items}</ul>'


def _verdict(facts: Facts) -> str:
    """Say whether anything is NaN or infinite, and where that came from."""
    error = facts.trouble
    if error is None and not facts.bad:
        return (
            '<p class="verdict">No NaN and no infinity, forward or backward, in evaluation mode '
            "(<code>net.eval()</code>).</p>"
        )
    first = min(facts.bad - _around(facts), default=None)
    where = ""
    if first is not None:
        name = safe(facts.calls[first].name)
        where = f' First in the result of <a href="#c{first}"><code>{name}</code></a>.'
    text = safe(error) if error is not None else "Given, not made by the net."
    return f'<div class="verdict bad"><b>NaN or infinity.</b>{where}<pre>{text}</pre></div>'


def _around(facts: Facts) -> set[int]:
    """Return the calls that have calls inside: their results are those of the last inside."""
    return {call.number for call in facts.calls if call.children}


def _answer(facts: Facts) -> str:
    parts = list(_answer_parts(facts))
    return f'<div class="row">{"".join(parts)}</div>' if parts else ""


def _answer_parts(facts: Facts) -> Iterator[str]:
    arrays = [array_of(x) for x in facts.given if isinstance(x, Tensor)]
    image = _images.photograph(arrays[0], "The input") if arrays else None
    if image:
        yield image.html(224)
    image = _result(facts)
    if image:
        yield image.html(224)
    for what, values in facts.pictures.items():
        yield _images.heat(values, what).html(224)
    scores = facts.values.scores
    if scores is not None and np.isfinite(scores[0]).all():
        yield _classes(scores[0])


def _result(facts: Facts) -> _images.Image | None:
    """Return the first image's result if that is an image or maps, as those of segmentation."""
    array = facts.values.arrays.get(facts.calls[0].name)
    if array is None:
        return None
    what = "The result"
    return _images.photograph(array, what) or _images.maps(array, 160, _MOST_MAPS, what)


def _classes(scores: np.ndarray) -> str:
    """Return the largest scores and their softmax as a table; probabilities as they are."""
    shares = scores.astype(np.float64)
    head = "Probability"
    if scores.min() < 0 or abs(shares.sum() - 1) > 1e-3:
        shares = quiet(lambda: np.exp(shares - shares.max()))
        shares = quiet(np.true_divide, shares, shares.sum())
        head = "Softmax"
    best = np.argsort(-scores, kind="stable")[:_MOST_CLASSES]
    rows = "".join(
        f"<tr><td>{one}</td><td>{safe(number(float(scores[one])))}</td><td>{shares[one]:.1%}</td></tr>"
        for one in best
    )
    return (
        "<table><caption>Largest class scores of the first image</caption><thead><tr>"
        f'<th scope="col">Class</th><th scope="col">Score</th><th scope="col">{head}</th></tr>'
        f"</thead><tbody>{rows}</tbody></table>"
    )


def _graph(facts: Facts) -> str:
    pictures = [draw(facts.calls, 0, facts.times, facts.bad)]
    for first in kinds_of_blocks(facts.calls)[:_MOST_BLOCKS]:
        call = facts.calls[first]
        link = f'<a href="#c{first}"><code>{safe(call.name)}</code></a>'
        title = f"<h3>Inside {link} {safe(call.type)}</h3>"
        pictures.append(title + draw(facts.calls, first, facts.times, facts.bad))
    shown = "".join(f"<div>{picture}</div>" for picture in pictures)
    return (
        '<p class="key">A box is a layer, or a block of layers; choose one to see what is inside. '
        "Equal blocks in a row share a box. The first block of each kind is drawn from inside, "
        "too. A layer with no bytes makes no new array: it works in place, or returns a view."
        f"{' Times are of both passes together.' if facts.times else ''}"
        '<i class="k1"></i>block<i class="k2"></i>convolution or linear layer'
        '<i class="k3"></i>multiply-adds (MACs): the box with the most has a full bar'
        '<i class="k4"></i>has NaN or infinities</p>'
        f'<div class="graphs">{shown}</div>'
    )


def _times(facts: Facts) -> str:
    if facts.profile is None:
        return ""
    disturbed = disturbance(facts.profile)
    return (
        f"<p>Forward and backward pass together, on {facts.profile.threads} thread"
        f"{'s' if facts.profile.threads != 1 else ''}: a bar's width is its time, and what is "
        "below it ran inside it. Point at a bar for its name and times; thin neighbours are "
        "one bar. These are measured, and differ with each report.</p>"
        f"{f'<p>Meanwhile {disturbed}.</p>' if disturbed else ''}"
        f"{_charts.flame(facts.profile.rows)}"
    )


def _gradients(facts: Facts) -> str:
    weights, grads = _weights(facts), facts.values.weight_grads
    weighted = [
        (call.number, name, grads[name]["std"])
        for call in facts.calls
        for name in weights.get(call.name, [])
        if grads[name]
    ]
    chart = _charts.flow(weighted)
    if not chart:
        return ""
    return (
        f"<p>Standard deviation of the gradient of {_score(facts)} by each layer's weights, first "
        "layer at the left, on a logarithmic scale. Bars that fall towards the left are gradients "
        "that vanish; bars that rise towards it, gradients that explode. Point at a bar for its "
        "name, choose it for its layer. Layers that shortcuts lead past, as in the middle of a "
        f"U-Net, may have smaller ones.</p>{chart}"
    )


def _weights(facts: Facts) -> dict[str, list[str]]:
    """Return the names of weights by the innermost call of a module that they belong to.

    An LSTM has several; attention's last layer is no call, and its weight belongs to attention.
    """
    modules = {call.name for call in facts.calls if call.module is not None}
    found: dict[str, list[str]] = {}
    for name in facts.values.weight_grads:
        path, _, last = name.rpartition(".")
        while path and path not in modules:
            path = path.rpartition(".")[0]
        if "weight" in last:
            found.setdefault(path or "output", []).append(name)
    return found


def _score(facts: Facts) -> str:
    """Say what gradients are taken of."""
    return "the largest class score" if facts.values.scores is not None else "the result's sum"


def _note_on_table(facts: Facts) -> str:
    fused = (
        " A batch norm that runs fused with the ReLU after it has no time of its own: its time is "
        "part of that of the block around it."
    )
    return (
        '<p class="soft">In the order of the calls; what is indented is inside the row above. '
        "A second call of a module or function ends in :2. Mean, Std (standard deviation) and "
        f"Zeros are of its result, Gradient std is of the gradient of {_score(facts)} with respect "
        "to that. Memory is of all new results, also those of functions, such as a sum; the table "
        f"of summary has modules alone.{fused if facts.profile else ''}</p>"
    )


def _note_on_layers() -> str:
    return (
        '<p class="soft">Open one to see its algorithms, statistics, feature maps and weights.</p>'
    )
