"""PyTorch's interception of operators below autograd, which is not there."""

from __future__ import annotations

from typing import Any, NoReturn

from convcore._errors import missing


class TorchDispatchMode:
    """A context that sees the operators of PyTorch's core: entering it raises `NotUsableError`."""

    def __init__(self, _dispatch_key: Any = None):
        pass

    def __enter__(self) -> NoReturn:
        raise missing.NotUsableError(
            missing.explain("torch.utils._python_dispatch.TorchDispatchMode")
        )

    def __exit__(self, *error: object) -> None:
        pass


def is_traceable_wrapper_subclass(value: Any) -> bool:
    """Return False."""
    return False


def return_and_correct_aliasing(func: Any, args: Any, kwargs: Any, out: Any) -> Any:
    """Return the result."""
    return out
