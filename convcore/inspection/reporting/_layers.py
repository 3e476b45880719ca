"""The layers of a report: for each call what it is, how it is computed, and what is in it."""

from __future__ import annotations

from collections.abc import Iterator

from convcore.inspection.reporting import _charts, _images
from convcore.inspection.reporting._calls import Call
from convcore.inspection.reporting._facts import Facts
from convcore.inspection.reporting._graph import draw
from convcore.inspection.reporting._text import bytes_of, number, safe, seconds, shape
from convcore.inspection.reporting._values import array_of

_STATISTICS = ("mean", "std", "min", "max", "zeros", "nan", "inf")
_HEADS = ("mean", "std", "min", "max", "zeros", "NaN", "infinite")
# Pixels of all feature maps in a page: fewer where text and histograms of many calls take the room.
_IMAGES, _IMAGES_LESS, _IMAGES_LEAST = 520_000, 1700, 60_000
_MOST, _LEAST = 56, 8  # pixels a side of a feature map
_SHOWN = 12


def layers(facts: Facts) -> str:
    """Return a part that opens for each call; all of it is there without scripts."""
    side = _side(facts)
    return "".join(_layer(facts, call, side) for call in facts.calls)


def _side(facts: Facts) -> int:
    """Return how many pixels a side feature maps have, so that all of them fit in a page."""
    places = [array.shape[2:] for array in facts.values.arrays.values() if array.ndim == 4]
    room = max(_IMAGES - _IMAGES_LESS * len(facts.calls), _IMAGES_LEAST)
    for side in range(_MOST, _LEAST, -1):
        pixels = sum(_SHOWN * min(h, side) * min(w, side) for h, w in places)
        if pixels < room:
            return side
    return _LEAST


def _layer(facts: Facts, call: Call, side: int) -> str:
    name = "(the net)" if call.number == 0 else call.name
    bad = call.number in facts.bad
    mark = " \N{MIDDLE DOT} <strong>has NaN or infinities</strong>" if bad else ""
    parts = [
        '<details class="bad">' if bad else "<details>",
        f'<summary><code>{safe(name)}</code> {safe(call.type)} <span class="soft">'
        f"{safe(shape(call.output))}</span>{mark}</summary>",
        # A link to what is inside opens it.
        f'<div class="layer" id="c{call.number}"><p>{_sentence(facts, call)}</p>',
    ]
    if call.children and call.number:
        parts.append(draw(facts.calls, call.number, facts.times, facts.bad))
    parts.append(_algorithms(call))
    parts.append(_statistics(facts, call))
    parts.append(f'<div class="row">{"".join(_figures(facts, call, side))}</div>')
    return "".join(parts) + "</div></details>"


def _sentence(facts: Facts, call: Call) -> str:
    """Return a call's costs, and links to what it takes its input from."""
    facts_ = [f"{call.parameters:,} parameters"] if call.parameters else []
    if call.multiply_adds:
        facts_.append(f"{call.multiply_adds:,} multiply-adds")
    facts_.append(f"{bytes_of(call.bytes)} of new results" if call.bytes else "no new memory")
    base = call.name.partition(":")[0] if call.module is not None else call.name
    if facts.profile and facts.forward.get(base):
        forward, backward = facts.forward[base], facts.backward[base]
        facts_.append(f"{seconds(forward)} forward, {seconds(backward)} backward")
        if call.name != base or any(one.name.startswith(f"{base}:") for one in facts.calls):
            facts_[-1] += " in all calls of this module"
    sources = [
        "the input"
        if one < 0
        else f'<a href="#c{one}"><code>{safe(facts.calls[one].name)}</code></a>'
        for one in call.inputs
    ]
    taken = f" Takes {', '.join(sources)}." if sources else ""
    around = ""
    if call.parent is not None:
        name = facts.calls[call.parent].name if call.parent else "(the net)"
        around = f' Inside <a href="#c{call.parent}"><code>{safe(name)}</code></a>.'
    own = safe(call.module.extra_repr()) if call.module is not None and not call.children else ""
    settings = f"<code>{safe(call.type)}({own})</code>. " if own else ""
    costs = ", ".join(facts_)
    return f"{settings}{costs[0].upper()}{costs[1:]}.{taken}{around}"


def _algorithms(call: Call) -> str:
    """Return the plan of a convolution's three passes, with reasons."""
    if call.plan is None:
        return ""
    forward, input_grad = call.plan.forward, call.plan.input_grad
    if getattr(call.module, "transposed", False):
        forward, input_grad = input_grad, forward
    passes = (
        ("forward", forward),
        ("input gradient", input_grad),
        ("weight gradient", call.plan.weight_grad),
    )
    rows = "".join(
        f'<tr><td>{name}</td><td class="left"><code>{safe(plan.algorithm)}</code></td>'
        f'<td class="left why">{safe(plan.reason)}</td><td>{bytes_of(plan.scratch_bytes)}</td></tr>'
        for name, plan in passes
    )
    return (
        '<h3>Algorithms</h3><div class="wide"><table><thead><tr><th scope="col">Pass</th>'
        '<th scope="col" class="left">Algorithm</th><th scope="col" class="left">Because</th>'
        '<th scope="col">Scratch memory per thread</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _statistics(facts: Facts, call: Call) -> str:
    values = facts.values
    found = [
        ("result", values.outputs.get(call.name)),
        ("its gradient", values.grads.get(call.name)),
    ]
    for name, path in _own_parameters(call):
        found.append((name, values.weights.get(path)))
        found.append((f"gradient of {name}", values.weight_grads.get(path)))
    rows = "".join(_statistics_row(name, one) for name, one in found if one)
    if not rows:
        return ""
    heads = "".join(f'<th scope="col">{head}</th>' for head in _HEADS)
    return (
        '<h3>Values</h3><div class="wide"><table><thead><tr><th scope="col">Of</th>'
        f"{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _statistics_row(name: str, found: dict) -> str:
    cells = "".join(
        f"<td>{found[one]:.1%}</td>" if one == "zeros" else f"<td>{safe(number(found[one]))}</td>"
        for one in _STATISTICS
    )
    bad = ' class="bad"' if found["nan"] or found["inf"] else ""
    return f"<tr{bad}><td>{safe(name)}</td>{cells}</tr>"


def _own_parameters(call: Call) -> Iterator[tuple[str, str]]:
    """Yield a parameter's own name and its path."""
    if call.module is None:
        return
    path = "" if call.number == 0 else call.name.partition(":")[0] + "."
    for name, parameter in call.module._parameters.items():
        if parameter is not None:
            yield name, f"{path}{name}"


def _figures(facts: Facts, call: Call, side: int) -> Iterator[str]:
    values = facts.values
    array = values.arrays.get(call.name)
    if call.children:  # the last call inside has the same
        return
    if array is not None and (image := _images.maps(array, side, _SHOWN)):
        yield image.html(360)
    weight = getattr(call.module, "weight", None)
    if call.plan is not None and weight is not None:
        image = _images.kernels(array_of(weight))
        if image:
            yield image.html(360)
    for what, found in (("result", values.outputs), ("gradient", values.grads)):
        if call.name in found:
            yield _charts.histogram(found[call.name]["histogram"], f"the {what}")
