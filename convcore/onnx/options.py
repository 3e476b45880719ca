"""Arguments of PyTorch's export that change nothing here."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from convcore._errors import hinted
from convcore._errors.calls import unknown_keyword

# With the values that mean what happens here anyway; None: any does.
_OTHERS: dict[str, tuple[Any, ...] | None] = {
    **dict.fromkeys(("artifacts_dir", "autograd_inlining", "do_constant_folding", "dynamo")),
    **dict.fromkeys(("fallback", "operator_export_type", "optimize", "verbose", "verify")),
    **dict.fromkeys(("dump_exported_program", "export_modules_as_functions"), (False,)),
    **dict.fromkeys(("profile", "report"), (False,)),
    **dict.fromkeys(("custom_opsets", "custom_translation_table"), ({},)),
    # TrainingMode.EVAL and PRESERVE, which older programs write as False.
    "training": (0, 1),
}


def check_others(export: Callable[..., Any], given: Mapping[str, Any]) -> None:
    """Raise TypeError for an argument that is not PyTorch's, or would change what is written."""
    for name, value in given.items():
        if name not in _OTHERS:
            raise unknown_keyword("export", name, (*inspect.signature(export).parameters, *_OTHERS))
        allowed = _OTHERS[name]
        if allowed is not None and value is not None and value not in allowed:
            texts = " or ".join(map(repr, allowed))
            raise hinted(
                TypeError(f"export(): {name} must be {texts}, got {value!r:.99}"),
                "nets are exported in evaluation mode" if name == "training" else "",
            )
