"""Interrupt convcore's contexts at every place where Python looks for signals.

    python tests/fuzz/instruction_interrupts.py --most=10000 summary export

`interrupts.py` sends signals at random moments; this raises KeyboardInterrupt at chosen
instructions.  Afterwards the net and the process must be as before, and the interrupt must have
come through as it is.
"""

from __future__ import annotations

import argparse
import gc
import io
import random
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "helpers"))

import numpy as np
from interrupting import count_places, interrupted_at

import convcore
from convcore import inspection, nn, optimize_for_inference, overrides
from convcore.amp import autocast
from convcore.autograd import anomaly_mode, casting, grad_mode, graph, observation
from convcore.backends import conv
from convcore.engine.conv import selection
from convcore.inspection import attribution
from convcore.nn import functional as F
from convcore.nn.modules import _hooks
from convcore.nn.utils import parametrizations, parametrize
from convcore.optim import optimizer as optimizers
from convcore.utils import checkpoint
from convcore.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3)
        self.linear = parametrizations.weight_norm(nn.Linear(3 * 4 * 4, 2))
        self.calls: list[int] = []

    def forward(self, x: Any) -> Any:
        self.calls.append(len(x))
        self.calls.pop()
        return self.linear(F.relu(self.norm(self.conv(x))).flatten(1) * 1)


class Works:
    """What is interrupted, each a method."""

    def __init__(self) -> None:
        convcore.manual_seed(0)
        self.net, self.x = Net().eval(), convcore.rand(1, 2, 6, 6)
        self.data = DataLoader(TensorDataset(convcore.rand(4, 2, 6, 6)), 2, shuffle=True)

    def summary(self) -> None:
        convcore.summary(self.net, self.x)

    def export(self) -> None:
        convcore.onnx.export(self.net, (self.x,), dynamic_axes={"x": {0: "batch"}})

    def capture(self) -> None:
        with inspection.capture(self.net) as found:
            self.net(self.x).sum().backward()
        del found

    def patch(self) -> None:
        with inspection.patch(self.net, {"conv": inspection.scale(2)}):
            self.net(self.x)

    def profile(self) -> None:
        with inspection.profile(self.net):
            self.net(self.x)

    def find_nan(self) -> None:
        with inspection.find_nan(self.net):
            self.net(self.x)

    def watch(self) -> None:
        step = convcore.optim.SGD(self.net.parameters(), lr=0.0).step
        with inspection.watch(0, show=lambda report: None):
            for _ in range(2):
                self.net(self.x).sum().backward()
                step()

    def explain(self) -> None:
        attribution.integrated_gradients(self.net, self.x, 0, n_steps=2, max_steps=2)

    def calls(self) -> None:
        inspection.pictures.graph(self.net, self.x)

    def optimize(self) -> None:
        optimize_for_inference(self.net, self.x)(self.x)

    def functional_call(self) -> None:
        convcore.func.functional_call(self.net, {"conv.bias": convcore.zeros(3)}, (self.x,))

    def derivatives(self) -> None:
        convcore.func.grad(lambda x: (x * x).sum())(self.x)

    def recompute(self) -> None:
        x = self.x.clone().requires_grad_()
        with checkpoint.set_checkpoint_early_stop(False):
            y = checkpoint.checkpoint(self.net, x, use_reentrant=False)
        convcore.autograd.grad(y.sum(), x)

    def grad_modes(self) -> None:
        with convcore.no_grad(), convcore.enable_grad(), convcore.set_grad_enabled(True):
            pass
        with convcore.inference_mode(), convcore.device("cpu"), conv.flags(strict=True):
            self.net(self.x)

    def graph_contexts(self) -> None:
        with graph.save_on_cpu(), graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            self.net(self.x)
        with graph.disable_saved_tensors_hooks("none here"):
            self.net(self.x)
        with graph.allow_mutation_on_saved_tensors():
            self.net(self.x)

    def autocast(self) -> None:
        with autocast("cpu"):
            self.net(self.x)

    def anomaly(self) -> None:
        with convcore.autograd.set_detect_anomaly(True):
            convcore.autograd.grad(self.net(self.x).sum(), self.net.conv.bias)

    def parametrized(self) -> None:
        with parametrize.cached():
            self.net(self.x)

    def random_numbers(self) -> None:
        with convcore.random.fork_rng():
            convcore.rand(3)

    def modes(self) -> None:
        class Mode(overrides.TorchFunctionMode):
            def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None):
                return func(*args, **(kwargs or {}))

        with Mode(), overrides.DisableTorchFunctionSubclass():
            convcore.add(self.x, 1)
        with Mode():
            convcore.add(self.x, 1)

    def loader(self) -> None:
        with convcore.random.fork_rng():
            list(self.data)

    def warnings_of_numpy(self) -> None:
        convcore.tensor([0.0]).log().to(convcore.float16)
        convcore.tensor([float("nan")], dtype=convcore.bfloat16).add_(1)

    def save(self) -> None:
        convcore.save(self.x, io.BytesIO())


NAMES = [name for name in vars(Works) if name[0] != "_"]


def process() -> dict[str, Any]:
    """Return all that holds beyond a call."""
    mode = grad_mode.mode
    found = {name: getattr(mode, name) for name in vars(type(mode)) if not name.startswith("_")}
    hooks = [value for name, value in vars(_hooks).items() if name.startswith("_global_")]
    return {
        **found,
        "inference": sorted(convcore._tensor.recording.inferring),
        "anomaly": (anomaly_mode.anomaly.enabled, anomaly_mode.anomaly.check_nan),
        "autocast": (casting.state(), casting.here.nesting, casting.exchange.holders()),
        "selection": selection.current(),
        "device": convcore.get_default_device(),
        "interception": (
            overrides._state.modes,
            overrides._state.watchers,
            overrides._state.no_subclasses,
            len(overrides._holders),
            len(overrides._before),
        ),
        "functions": {**vars(F), **vars(convcore.Tensor)},
        "observers": (dict(observation.observers), dict(observation._callbacks)),
        "errstate": np.geterr(),
        "random numbers": convcore.get_rng_state().tolist(),
        "parametrize": (len(parametrize._open), len(parametrize._cache)),
        "export": convcore.onnx.is_in_onnx_export(),
        "profile": sys.getprofile(),
        "hooks": [dict(each) for each in hooks],
        "optimizers": (len(optimizers._global_pre_hooks), len(optimizers._global_post_hooks)),
        "checkpoint": checkpoint._early_stop,
        "mutation": getattr(graph._Copies.now, "open", False),
        "len": globals().get("len"),
    }


def members(net: nn.Module) -> dict[str, Any]:
    """Return what a net has, by path."""
    found: dict[str, Any] = {}
    for path, module in net.named_modules():
        for name, value in vars(module).items():
            if isinstance(value, dict):
                found.update({f"{path}.{name}.{key}": id(each) for key, each in value.items()})
            else:
                found[f"{path}.{name}"] = repr(value) if isinstance(value, list) else id(value)
    for name, value in (*net.named_parameters(), *net.named_buffers()):
        found[f"value of {name}"] = value.detach().numpy().tobytes(), value.requires_grad
    return found


def faults(name: str, most: int, seed: int = 20, anywhere: bool = False) -> Iterator[str]:
    """Interrupt a work at so many places at most, and yield what was wrong after each."""
    works = Works()
    work: Callable[[], None] = getattr(works, name)
    for _ in range(2):
        work()
    works.net.zero_grad()
    n_places = count_places(work, anywhere=anywhere)
    works.net.zero_grad()
    numbers = range(n_places)
    if n_places > most:
        numbers = sorted(random.Random(seed).sample(numbers, most))
    dropped: list[str] = []  # names, for an exception would keep alive all that its frames hold
    hook = sys.unraisablehook
    sys.unraisablehook = lambda found: dropped.append(found.exc_type.__name__)
    try:
        yield from _faults(works, work, numbers, n_places, anywhere, dropped)
    finally:
        sys.unraisablehook = hook


def _faults(
    works: Works,
    work: Callable[[], None],
    numbers: Iterable[int],
    n_places: int,
    anywhere: bool,
    dropped: list[str],
) -> Iterator[str]:
    gc.collect()
    before, own = process(), members(works.net)
    for number in numbers:
        dropped.clear()
        try:
            interrupted = interrupted_at(number, work, anywhere=anywhere)
        except BaseException as error:
            yield f"place {number}: KeyboardInterrupt became {error!r:.200}"
            interrupted = True
        works.net.zero_grad()
        now, found = process(), members(works.net)
        for what in before:
            if now[what] != before[what]:
                yield f"place {number}: {what} is {now[what]!r:.200}, not {before[what]!r:.200}"
        changed = {key for key in own.keys() | found.keys() if own.get(key) != found.get(key)}
        if changed:
            yield f"place {number}: the net has another {sorted(changed)[:5]}"
        # Python drops interrupts in finalizers.
        if not interrupted and number < n_places - 20 and "KeyboardInterrupt" not in dropped:
            yield f"place {number} of {n_places}: the interrupt did not come through"
        if now != before or changed:  # what is left would be found again
            return


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--most", type=int, default=1000, help="places in a work")
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--anywhere", action="store_true", help="at all instructions")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    count = 0
    for name in options.names:
        found = list(faults(name, options.most, options.seed, options.anywhere))
        count += len(found)
        print(f"{name}: {len(found)} faults", *found, sep="\n  ", flush=True)
    return bool(count)


if __name__ == "__main__":
    sys.exit(main())
