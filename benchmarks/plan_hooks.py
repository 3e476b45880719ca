"""What looking inside an optimized net costs: calls with hooks or a capture over plain ones.

Calls of the plan that is cut at the watched points, and of the whole plan, alternate; the
time is that of the process on all its cores. Of one hook, the median over layers is printed, and
the largest.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from children import check_requested, conclude
from inspection_profile import seconds

import convcore
from convcore import inspection, models, nn

# What a call may cost, as a multiple of a plain one.
LIMITS = {"one hook": 1.05, "capture of ten": 1.1, "capture of all": 1.3}
NETS = {"ResNet-18": "resnet18", "MobileNetV2": "mobilenet_v2"}
LAYERS = 12  # that get the one hook, evenly spread
CALLS = 9


def nothing(*args: Any) -> None:
    """Do nothing: a forward hook."""


def ratio(call: Callable[[], Any], watching: Callable[[], AbstractContextManager]) -> float:
    """Return the median, over pairs, of the time of a call that is watched to that of one not."""
    ratios = []
    for _ in range(CALLS):
        call()
        plain = seconds(call)
        with watching():
            call()
            ratios.append(seconds(call) / plain)
    return statistics.median(ratios)


def measured(net: nn.Module) -> dict[str, float]:
    """Return the costs of looking into a net by kind."""
    x = convcore.randn(1, 3, 224, 224)
    fast = convcore.optimize_for_inference(net, x)
    layers = {n: m for n, m in fast.model.named_modules() if n and not list(m.children())}
    names = list(layers)
    some = names[:: -(-len(names) // LAYERS)]
    hooks = [
        ratio(lambda: fast(x), lambda n=n: layers[n].register_forward_hook(nothing)) for n in some
    ]
    for name, each in zip(some, hooks, strict=True):
        print(f"  {name:32}{each:6.3f}", flush=True)
    ten = names[:: len(names) // 10][:10]
    return {
        "one hook": statistics.median(hooks),
        "capture of ten": ratio(
            lambda: fast(x), lambda: inspection.capture(fast, ten, of="output")
        ),
        "capture of all": ratio(lambda: fast(x), lambda: inspection.capture(fast, of="output")),
    }


def main() -> int:
    """Measure and print."""
    check, failed = check_requested(__doc__.partition("\n")[0]), 0
    for name, maker in NETS.items():
        net = getattr(models, maker)().eval()
        for threads in (1, 2):
            convcore.set_num_threads(threads)
            for kind, value in measured(net).items():
                label = f"{name}, {threads} threads, {kind}"
                failed |= conclude(label, value, LIMITS[kind], "x", check)
    return failed


if __name__ == "__main__":
    sys.exit(main())
