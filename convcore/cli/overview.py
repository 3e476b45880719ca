"""What ``convcore`` alone prints: the commands that people want first, by what they are for."""

from __future__ import annotations

import textwrap

import convcore
from convcore.cli.terminal import columns

_EXAMPLES = {
    "See that it works": (
        ("info", "versions, CPU, and what is misconfigured"),
        ("demo digits", "train a net, and draw its inside [demo]"),
        ("verify", "check every algorithm on this machine"),
    ),
    "Use it": (
        ("run script.py", "run a program written for PyTorch"),
        ("watch train.py", "loss, gradients, dead units, live"),
        ("summary resnet18", "a net's modules, parameters and memory"),
        ("run-model net.onnx -i x.jpg", "what a net sees in a photo [onnx]"),
        ("finetune net.onnx --data x", "train it on your pictures [onnx]"),
        ("inspect resnet18", "a page: graph, layers, values, faults"),
    ),
    "See how fast it is": (
        ("bench --quick", "real layers beside PyTorch [bench]"),
        ("bench --nets resnet18", "a whole net, trained and run [bench]"),
        ("plan 2,64,56,56,64,3,1,1", "which algorithm a layer gets, and why"),
    ),
}
_LAST = (
    "[demo]: needs pip install 'convcore[demo]', and so on. Options: convcore COMMAND --help. "
    "Completion by TAB: convcore completion --help."
)
_INDENT, _GAP = "  ", 2
_WIDEST = 96


def overview() -> str:
    """Return the overview: beside each command what it does, or below it in a narrow terminal."""
    width = min(columns() or _WIDEST, _WIDEST)
    first = max(len(command) for some in _EXAMPLES.values() for command, _ in some)
    first += len("convcore ") + len(_INDENT) + _GAP
    longest = max(len(text) for some in _EXAMPLES.values() for _, text in some)
    beside = width >= first + longest
    lines = [*_wrap(f"convcore {convcore.__version__}: convolutional nets on the CPU", width)]
    for heading, examples in _EXAMPLES.items():
        lines += ["", *_wrap(heading, width)]
        for command, text in examples:
            called = f"{_INDENT}convcore {command}"
            if beside:
                lines.append(f"{called:{first}}{text}")
            else:
                lines += [called, *_wrap(text, width, 3 * _INDENT)]
    return "\n".join([*lines, "", *_wrap(_LAST, width)])


def _wrap(text: str, width: int, indent: str = "") -> list[str]:
    return textwrap.wrap(
        text, width, initial_indent=indent, subsequent_indent=indent, break_long_words=False
    )
