"""Checks of an optimizer's saved state, before anything of it is taken."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from convcore._tensor import Tensor
from convcore.optim._checks import check_numbers

_FORM = (("state", Mapping, "a dict"), ("param_groups", list | tuple, "a list of dicts"))


def check_mapping(state_dict: Any) -> None:
    """Raise TypeError unless a state_dict is one."""
    if not isinstance(state_dict, Mapping):
        raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")


def check_form(state_dict: Mapping[str, Any]) -> None:
    """Raise unless a state_dict has the parts that `Optimizer.state_dict` returns.

    Raises
    ------
    TypeError
        A part is of another type.
    ValueError
        A part is missing.
    """
    for name, kind, called in _FORM:
        if name not in state_dict:
            raise ValueError(f"state_dict has no {name!r}: expected an optimizer's state_dict")
        _require(f"state_dict[{name!r}]", state_dict[name], kind, called)
    for number, group in enumerate(state_dict["param_groups"]):
        place = f"state_dict['param_groups'][{number}]"
        _require(place, group, Mapping, "a dict")
        numbers = group.get("params")
        _require(f"{place}['params']", numbers, list | tuple | str, "a list of numbers")
        for one in numbers:
            _require(f"{place}['params']", one, Hashable, "a list of numbers")


def _require(place: str, value: Any, kind: Any, called: str) -> None:
    if not isinstance(value, kind):
        raise TypeError(f"{place} must be {called}, got {type(value).__name__}")


def check_options(groups: list[dict], own_groups: list[dict]) -> None:
    """Raise TypeError where an option is no number, or no pair, and the optimizer's own is."""
    for number, (group, own) in enumerate(zip(groups, own_groups, strict=True)):
        for name, value in own.items():
            if name not in group or isinstance(value, bool) or value is None:
                continue
            place = f"state_dict['param_groups'][{number}][{name!r}]"
            if isinstance(value, int | float | np.number | Tensor):
                check_numbers(**{place: group[name]})
            elif isinstance(value, tuple) and all(isinstance(one, int | float) for one in value):
                _require(place, group[name], list | tuple, f"{len(value)} numbers")
                if len(group[name]) != len(value):
                    raise TypeError(f"{place} must be {len(value)} numbers, got {group[name]!r}")
                for one in group[name]:
                    check_numbers(**{place: one})


# Entries of a state that are one number, a tensor or, in older states, a Python number.
NUMBERS = {"step", "mu_product"}
# Entries that are tensors of the parameter's shape. Entries in neither set are a program's own, and
# stay as they are.
ARRAYS = {"acc_delta", "exp_avg", "exp_avg_sq", "grad_avg", "max_exp_avg_sq", "momentum_buffer"}
ARRAYS |= {"square_avg", "sum"}


def check_states(states: Mapping[Any, Any]) -> None:
    """Raise TypeError where a parameter's state has something else than steps take."""
    for place, (parameter, own) in enumerate(states.items()):
        if not isinstance(parameter, Tensor):
            continue  # of no parameter of this optimizer: it is kept, not used
        what = f"the state of parameter {place}"
        _require(what, own, dict, "a dict")
        for name, value in own.items():
            if name in ARRAYS:
                _require(f"{name} in {what}", value, Tensor | None, "a Tensor")
            elif name not in NUMBERS:
                continue
            elif isinstance(value, Tensor) and value.numel() != 1:
                raise TypeError(f"{name} in {what} must be one number, got {value.numel()}")
            else:
                _require(f"{name} in {what}", value, Tensor | int | float, "a number")
