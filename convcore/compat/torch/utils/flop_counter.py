"""Counting of floating-point operations in the forward pass: `FlopCounterMode`."""

from __future__ import annotations

import inspect
from collections import defaultdict
from typing import Any

from convcore import Tensor, nn, overrides
from convcore.autograd.handle import RemovableHandle
from convcore.engine.runtime.restoring import Calls
from convcore.nn.modules._hooks import (
    _global_forward_hooks,
    _global_forward_hooks_always_called,
    _global_forward_pre_hooks,
)


class FlopCounterMode(overrides.TorchFunctionMode):
    """Count the operations of convolutions and matrix products in a ``with`` block.

    A multiplication and its addition count as two.  Only what is computed forwards is seen: in
    PyTorch a backward pass within the block counts, too.

    Parameters
    ----------
    display : bool
        Whether the table is printed at the end of the block.
    depth : int
        Levels of modules that the table shows.
    mods, custom_mapping
        Ignored.
    """

    def __init__(
        self, mods: Any = None, depth: int = 2, display: bool = True, custom_mapping: Any = None
    ):
        self.flop_counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self.depth, self.display = depth, display
        self._names: dict[nn.Module, str] = {}
        self._inside: list[str] = []

    def _back(self) -> Calls:
        self._hooks = RemovableHandle(
            _global_forward_pre_hooks,
            extra_dict=[_global_forward_hooks, _global_forward_hooks_always_called],
        )
        return (*super()._back(), (self._hooks.remove, ()))

    def _enter(self) -> FlopCounterMode:
        self.flop_counts.clear()
        key = self._hooks.id
        _global_forward_pre_hooks[key] = self._begins
        _global_forward_hooks[key] = self._ends
        _global_forward_hooks_always_called[key] = True
        super()._enter()
        return self

    def _ended(self, error: BaseException | None) -> None:
        self._names.clear()
        if self.display:
            print(self.get_table(self.depth))

    def _begins(self, module: nn.Module, args: Any) -> None:
        name = self._names.setdefault(module, type(module).__name__)
        for child, found in module.named_children():
            self._names[found] = f"{name}.{child}"
        self._inside.append(name)

    def _ends(self, *arguments: Any) -> None:
        self._inside.pop()

    def __torch_function__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        kwargs = kwargs or {}
        counted = _COUNTED.get(func.__name__)
        if counted is None or not isinstance(args[0] if args else None, Tensor):
            with overrides.intercepting(self):  # functions within this one are seen, too
                return inspect.unwrap(func)(*args, **kwargs)
        result = func(*args, **kwargs)
        name, count = counted
        flops = count(result, *args, **kwargs)
        for owner in ("Global", *dict.fromkeys(self._inside)):
            self.flop_counts[owner][name] += flops
        return result

    def get_total_flops(self) -> int:
        """Return the number of operations in the whole block."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[str, int]]:
        """Return the number by module, and by function of PyTorch's core."""
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """Return a table of modules, their numbers of operations, and shares of the whole."""
        depth, total = (self.depth if depth is None else depth), self.get_total_flops()
        rows = [
            (" " * name.count(".") + name, f"{flops:,}", f"{100 * flops / max(total, 1):.2f}%")
            for name, counts in self.flop_counts.items()
            if name.count(".") < depth
            for flops in [sum(counts.values())]
        ]
        return "\n".join(f"{a:40}{b:>20}{c:>10}" for a, b, c in [("Module", "FLOP", "%"), *rows])


def _convolution(result: Tensor, input: Tensor, weight: Tensor, *_: Any, **__: Any) -> int:
    return 2 * (result.numel() // weight.shape[0]) * weight.numel()


def _transposed(result: Tensor, input: Tensor, weight: Tensor, *_: Any, **__: Any) -> int:
    return 2 * (input.numel() // weight.shape[0]) * weight.numel()


def _product(result: Tensor, a: Tensor, b: Tensor, *_: Any, **__: Any) -> int:
    return 2 * result.numel() * a.shape[-1]


def _sum_of_products(result: Tensor, added: Tensor, a: Tensor, b: Tensor, **_: Any) -> int:
    return _product(result, a, b)


_COUNTED: dict[str, tuple[str, Any]] = {
    **{f"conv{rank}d": ("aten.convolution", _convolution) for rank in (1, 2, 3)},
    **{f"conv_transpose{rank}d": ("aten.convolution", _transposed) for rank in (1, 2, 3)},
    **{name: ("aten.mm", _product) for name in ("mm", "matmul", "__matmul__")},
    **{"linear": ("aten.addmm", _product), "bmm": ("aten.bmm", _product)},
    **{"addmm": ("aten.addmm", _sum_of_products), "baddbmm": ("aten.baddbmm", _sum_of_products)},
}
