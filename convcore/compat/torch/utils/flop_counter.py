"""Counting of floating-point operations in the forward pass: `FlopCounterMode`."""

from __future__ import annotations

import inspect
from collections import defaultdict
from typing import Any

from convcore import Tensor, nn, overrides
from convcore.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
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

    def __enter__(self) -> FlopCounterMode:
        self.flop_counts.clear()
        self._handles = [
            register_module_forward_pre_hook(self._begins),
            register_module_forward_hook(self._ends, always_call=True),
        ]
        super().__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        for handle in self._handles:
            handle.remove()
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
            overrides.TorchFunctionMode.__enter__(self)  # functions within this one are seen, too
            try:
                return inspect.unwrap(func)(*args, **kwargs)
            finally:
                overrides.TorchFunctionMode.__exit__(self)
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
