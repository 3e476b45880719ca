"""The table of a report: a row for each call, with what it makes and costs."""

from __future__ import annotations

from convcore.inspection.reporting._calls import Call
from convcore.inspection.reporting._facts import Facts
from convcore.inspection.reporting._text import bytes_of, count, number, safe, seconds, shape

_DASH = "\N{EN DASH}"
_HEAD = (
    ("Layer", "left", "The call's name, as inspection.capture has it"),
    ("Type", "left", ""),
    ("Output", "", "Shape, with the batch first"),
    ("Parameters", "", ""),
    ("Multiply-adds", "", "Of convolutions and linear layers, forward"),
    ("Memory", "", "Bytes of new results: none for views and in-place changes"),
    ("Algorithm", "left", "That computes the forward pass"),
    ("Mean", "", "Of the result"),
    ("Std", "", "Standard deviation of the result"),
    ("Zeros", "", "Share of the result's elements that are 0"),
    ("Gradient std", "", "Standard deviation of the gradient with respect to the result"),
)
_TIMES = (("Forward", "", "Time"), ("Backward", "", "Time"))


def table(facts: Facts) -> str:
    """Return the table of calls, those inside others indented below them."""
    head = "".join(
        f'<th scope="col" class="{side}" title="{safe(about)}">{name}</th>'
        for name, side, about in (*_HEAD, *(_TIMES if facts.profile else ()))
    )
    rows = "".join(_row(facts, call) for call in facts.calls)
    return (
        '<div class="wide" tabindex="0" role="region" aria-label="Table of layers"><table>'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _row(facts: Facts, call: Call) -> str:
    kind = " ".join(
        word
        for word, is_so in (("block", call.children), ("bad", call.number in facts.bad))
        if is_so
    )
    found = facts.values.outputs.get(call.name, {})
    grad = facts.values.grads.get(call.name, {})
    indent = "\N{NO-BREAK SPACE}" * (2 * _depth(facts.calls, call))
    name = "(the net)" if call.number == 0 else call.name
    cells = [
        ("left", safe(call.type)),
        ("", safe(shape(call.output))),
        ("", count(call.parameters) if call.parameters else _DASH),
        ("", count(call.multiply_adds) if call.multiply_adds else _DASH),
        ("", bytes_of(call.bytes) if call.bytes else _DASH),
        ("left", safe(forward_algorithm(call)) or _DASH),
        ("", _value(found, "mean")),
        ("", _value(found, "std")),
        ("", f"{found['zeros']:.0%}" if found.get("zeros", -1) >= 0 else _DASH),
        ("", _value(grad, "std")),
    ]
    if facts.profile:
        base = call.name.partition(":")[0] if call.module is not None else call.name
        again = call.name != base  # a module's times are sums of its calls: with the first
        cells += [
            ("", seconds(times[base]) if times.get(base) and not again else _DASH)
            for times in (facts.forward, facts.backward)
        ]
    link = f'<a href="#c{call.number}"><code>{safe(name)}</code></a>'
    rest = "".join(
        f'<td class="{side}">{cell}</td>' if side else f"<td>{cell}</td>" for side, cell in cells
    )
    return f'<tr class="{kind}"><td>{indent}{link}</td>{rest}</tr>'


def forward_algorithm(call: Call) -> str:
    """Return the algorithm of a convolution's forward pass; empty of other calls."""
    if call.plan is None:
        return ""
    transposed = getattr(call.module, "transposed", False)
    return (call.plan.input_grad if transposed else call.plan.forward).algorithm


def _value(found: dict, name: str) -> str:
    return safe(number(found[name])) if name in found else _DASH


def _depth(calls: list[Call], call: Call) -> int:
    depth = 0
    while call.parent is not None:
        call, depth = calls[call.parent], depth + 1
    return depth
