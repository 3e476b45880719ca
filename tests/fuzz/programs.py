"""Random small programs run on convcore and on PyTorch: values, gradients, errors; the long form.

    python tests/fuzz/programs.py --count 1000 --seed 0      # 1000 programs, of seeds 0 to 999
    python tests/fuzz/programs.py --line "v0 = leaf(3, 'float32', (2, 3), True); v1 = v0.sum(4)"

A program is a list of lines, drawn from the templates of `program_lines.py`.  Compared are, of each
line, its value (type, dtype, size, strides of a view, whether it requires grad) or the class of its
error; at the end every tensor again, the gradients of the leaves, and the gradients of those.  Some
programs have lines under autocast, whose dtypes must be PyTorch's, and values to its rounding.

Each difference is printed as the shortest program that still shows it, on one line; those that are
meant, each with its reason, are in `program_differences.py`.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

HERE = Path(__file__).resolve()
sys.path.insert(0, str(HERE.parent))

import program_differences  # noqa: E402
import program_lines  # noqa: E402

LONGEST = 15  # lines of a program, its first leaves left out
ROUNDED = 4000  # steps of 1e-6 in one of bfloat16
BATCH = 500  # programs of one process, which imports PyTorch
LARGEST = 1e4  # values beyond are seldom used again
DTYPES = ("float32",) * 5 + ("float64",) * 4 + ("int64", "int64", "bool", "complex64")
DTYPES += ("int32", "uint8", "complex128")
CASTING = ("",) * 7 + ("bfloat16", "bfloat16", "float16")  # of a program's lines under autocast
_HOLE = re.compile(r"<([a-zA-Z])(?::([^<>]*))?>")
_SIZE = re.compile(r"\bx\[[-\d:]+\]")


# Leaves


def kind_of(dtype: str) -> str:
    """Return NumPy's letter for what a dtype holds."""
    return "f" if dtype == "bfloat16" else np.dtype(dtype).kind


def leaf(library: Any, nudge: float, seed: int, dtype: str, size: tuple, grad: bool = False) -> Any:
    """Return a tensor of a library, its values drawn from a seed; it may lie turned in memory.

    nudge : how far values are moved, in terms of float32's and float64's last bits; a number beyond
        a thousand moves both by as much, for what autocast rounds
    """
    rng = np.random.default_rng(seed)
    kind = kind_of(dtype)
    values = np.asarray(rng.integers(-12, 13, size) / 4 if seed % 2 else rng.normal(size=size))
    if kind in "iu":
        values = np.asarray(rng.integers(0 if kind == "u" else -3, 4, size))
    elif kind == "b":
        values = np.asarray(rng.random(size) < 0.5)
    elif kind == "c":
        values = values + 1j * rng.normal(size=size)
    if nudge and kind in "fc":
        is_double = dtype in ("float64", "complex128") and abs(nudge) < 1000
        step = nudge * (1e-13 if is_double else 1e-6)
        values = values + step * rng.normal(size=size) * (1 + np.abs(values))
    values = np.array(values.astype("float32" if dtype == "bfloat16" else dtype))
    tensor = library.from_numpy(np.array(values.T, order="C").T if seed % 5 == 0 else values)
    tensor = tensor.bfloat16() if dtype == "bfloat16" else tensor
    return tensor.requires_grad_() if grad else tensor


# Programs


class Draw:
    """A random program; PyTorch runs along, so that later lines know the sizes of earlier ones."""

    def __init__(self, torch: Any, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.torch, self.lines = torch, []
        self.run = Run(torch)
        self.sizes = [2, 3, 1, 4]
        self.rng.shuffle(self.sizes)
        self.casting = self.pick(CASTING)
        for _ in range(int(self.rng.integers(2, 4))):
            self._new_leaf(self.pick(DTYPES), self._any_size())
        for _ in range(int(self.rng.integers(5, LONGEST + 1))):
            self._add()

    def pick(self, values: Any) -> Any:
        return values[int(self.rng.integers(len(values)))]

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def _any_size(self, rank: int | None = None) -> tuple[int, ...]:
        if rank is None:
            rank = int(self.rng.choice(5, p=[0.08, 0.2, 0.32, 0.2, 0.2]))
        size = self.sizes[len(self.sizes) - rank :]
        return tuple(1 if self.chance(0.1) else 0 if self.chance(0.01) else n for n in size)

    def _do(self, text: str, named: bool = True) -> str:
        name = f"v{len(self.lines)}"
        self.lines.append(f"{name} = {text}" if named else text)
        self.run.line(self.lines[-1])
        return name

    def _new_leaf(self, dtype: str, size: tuple[int, ...]) -> str:
        grad = kind_of(dtype) in "fc" and self.chance(0.7)
        text = f"leaf({int(self.rng.integers(10**6))}, '{dtype}', {size}" + ", True)" * grad
        return self._do(text + ")" * (not grad))

    def _add(self) -> None:
        families, shares = zip(*program_lines.FAMILIES, strict=True)
        template = self.pick(families[int(self.rng.choice(len(families), p=shares))])
        first: list[str] = []

        def fill(found: re.Match) -> str:
            text = self._hole(found[1], found[2] or "", first)
            return text

        text = _HOLE.sub(fill, template)
        size = self._size(first)
        text = _SIZE.sub(lambda one: repr(_of(size, one[0])), text)
        if self.casting and self.chance(0.4):
            text = f"under('{self.casting}', lambda: {text})"
        self._do(text, named="__setitem__" not in text)

    def _size(self, first: list[str]) -> tuple[int, ...]:
        return tuple(self.run.names[first[0]].shape) if first else ()

    def _hole(self, kind: str, more: str, first: list[str]) -> str:
        if kind in "tfribcvAT":
            name = self._tensor(kind, more, first)
            first.append(name)
            return name
        if kind == "x":
            return first[0]
        if kind in "om":
            return self._broadcasting("m" if kind == "m" else "t", first)
        if kind in "npksz":
            return repr(self._number(kind))
        return self._of_size(kind, self._size(first))

    def _number(self, kind: str) -> Any:
        if kind == "n":
            return self.pick((0, 1, -1, 2, 0.5, -1.5, 3, 1.0, 0.25, True))
        if kind == "p":
            return self.pick((0.5, 1, 2, 3.0))
        if kind == "k":
            return self.chance(0.5)
        return int(self.rng.integers(-2 if kind == "s" else 0, 4))

    def _of_size(self, kind: str, size: tuple[int, ...]) -> str:
        rank = len(size)
        if kind in "de":
            beyond = rank + (kind == "e") + self.chance(0.03)
            return repr(int(self.rng.integers(-beyond, beyond)) if beyond else self.pick((0, -1)))
        dims = [int(d) for d in self.rng.permutation(rank)]
        if kind == "P":
            return repr(tuple(dims))
        if kind == "D":
            count = int(self.rng.integers(1, rank + 1)) if rank else 0
            return repr(tuple(d - rank if self.chance(0.3) else d for d in dims[:count]))
        if kind == "E":
            return repr(
                tuple(2 if n == 1 else -1 for n in size) if self.chance(0.6) else (2, *size)
            )
        if kind == "S":
            count = int(np.prod(size))
            ways = [(-1,), (1, -1), size[::-1], (count,), (*size, 1), (*size[1:], *size[:1])]
            ways += [(-1, size[-1])] if size and size[-1] else []
            return repr(self.pick(ways))
        return self._index(size)

    def _index(self, size: tuple[int, ...]) -> str:
        rank = len(size)
        parts = [
            self._index_part(n) for n in size[: int(self.rng.integers(1, rank + 1)) if rank else 0]
        ]
        if self.chance(0.2):
            parts.insert(int(self.rng.integers(len(parts) + 1)), "None")
        if self.chance(0.2):
            parts.insert(int(self.rng.integers(len(parts) + 1)), "...")
        return "(" + ", ".join(parts) + ",)" if parts else "..."

    def _index_part(self, n: int) -> str:
        low, high = (int(v) for v in self.rng.integers(-n - 1, n + 2, 2))
        ways = ["slice(None)", f"slice({low}, {high})", f"slice(None, None, {1 + abs(high) % 3})"]
        ways += [str(min(low, n - 1)), "[0, -1]", "lib.tensor([0, 0])", f"slice({low}, None)"]
        ways += [f"lib.arange({n}) > {low}", "[[0], [-1]]"] * (n > 0)
        return self.pick(ways)

    def _tensor(self, kind: str, more: str, first: list[str]) -> str:
        if kind == "T":
            dtype, size = more.split(":", 1)
            shape = eval(_SIZE.sub(lambda one: repr(_of(self._size(first), one[0])), size))
            return self._new_leaf(dtype if self.chance(0.9) else "float64", tuple(shape))
        rank = int(more) if kind == "A" else None
        fit = [n for n, v in self.run.names.items() if self._fits(v, kind, rank)]
        tame = [n for n in fit if self._tame(self.run.names[n])]
        if self.chance(0.05):
            tame = fit = [n for n, v in self.run.names.items() if self._fits(v, "t", None)]
        if tame or (fit and self.chance(0.2)):
            names = tame or fit
            return names[-1] if self.chance(0.4) else self.pick(names)
        dtypes = {
            "i": ("int64", "int32", "uint8"),
            "b": ("bool",),
            "c": ("complex64", "complex128"),
        }
        dtypes |= {"t": DTYPES}
        return self._new_leaf(
            self.pick(dtypes.get(kind, ("float32", "float64"))), self._any_size(rank)
        )

    def _fits(self, value: Any, kind: str, rank: int | None) -> bool:
        if not isinstance(value, self.torch.Tensor) or value.numel() > 3000:
            return False
        if isinstance(self.run._try(lambda: value.requires_grad and value.is_leaf), Failed):
            return False
        if rank is not None and (value.dim() != rank or value.numel() == 0):
            return False
        if kind == "v":
            return not (value.requires_grad and value.is_leaf) or self.chance(0.05)
        real = value.is_floating_point()
        return {
            "t": True,
            "f": real or value.is_complex(),
            "c": value.is_complex(),
            "b": value.dtype == self.torch.bool,
            "i": not (real or value.is_complex() or value.dtype == self.torch.bool),
        }.get(kind, real)

    def _tame(self, value: Any) -> bool:
        plain = value.detach()
        if plain.numel() == 0 or plain.dtype == self.torch.bool:
            return True
        return bool(plain.abs().max() < LARGEST)

    def _broadcasting(self, kind: str, first: list[str]) -> str:
        size = self._size(first)
        fit = []
        for name, value in self.run.names.items():
            of_kind = isinstance(value, self.torch.Tensor) and (
                kind != "m" or value.dtype == self.torch.bool
            )
            if of_kind and _broadcast(size, tuple(value.shape)) and self._tame(value):
                fit.append(name)
        if fit and self.chance(0.6):
            return self.pick(fit)
        start = int(self.rng.integers(len(size) + 1)) if self.chance(0.3) else 0
        size = tuple(1 if self.chance(0.15) else n for n in size[start:])
        same = str(self.run.names[first[0]].dtype).split(".")[-1] if first else "float32"
        dtype = "bool" if kind == "m" else same if self.chance(0.7) else self.pick(DTYPES)
        return self._new_leaf(dtype, size)


def _of(size: tuple[int, ...], text: str) -> Any:
    try:
        return eval(text, {"x": size})
    except IndexError:
        return 1


def _broadcast(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    return all(a == b or 1 in (a, b) for a, b in zip(one[::-1], other[::-1], strict=False))


# Running


LEAVE = "leave this line out"


class Failed(NamedTuple):
    """A line that raised."""

    kind: str  # the class and its bases
    text: str


class Seen(NamedTuple):
    """A tensor, as it was after a line."""

    values: np.ndarray
    dtype: str
    strides: tuple
    view: bool
    grad: tuple  # whether it requires grad, and whether it is a leaf
    rounded: bool  # whether a line before was under autocast


class Run:
    """A program on one library."""

    def __init__(self, library: Any, nudge: float = 0.0) -> None:
        self.library, self.seen = library, {}
        self.rounded = False
        self.leaves: list[str] = []
        self.log: list[Any] = []
        self.globals = {
            "lib": library,
            "F": library.nn.functional,
            "log": self.log,
            "leaf": lambda *args: leaf(library, nudge, *args),
            "under": lambda dtype, call: under(library, dtype, call),
        }
        self.names: dict[str, Any] = {}

    def line(self, text: str) -> None:
        """Run a line, and keep what it gave or how it failed."""
        found = re.match(r"(v\d+) = (.*)", text)
        name, body = found.groups() if found else ("", text)
        if any(word not in self.names for word in re.findall(r"\bv\d+\b", body)):
            self.seen[text] = "skipped"
            return
        self.rounded = self.rounded or "under(" in body
        value = self._try(lambda: eval(body, self.globals | self.names))
        self.seen[text] = self._look(value)
        if name and not isinstance(value, Failed):
            self.names[name] = value
            if body.startswith("leaf("):
                self.leaves.append(name)

    def _try(self, call: Callable) -> Any:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                return call()
            except Exception as error:
                kinds = " ".join(kind.__name__ for kind in type(error).__mro__[:-3])
                return Failed(kinds, str(error).split("\n")[0][:150])

    def _look(self, value: Any) -> Any:
        if not hasattr(value, "detach"):
            return value
        plain = value.detach()
        if hasattr(plain, "resolve_neg"):
            plain = plain.resolve_conj().resolve_neg()
        if getattr(plain, "_is_zerotensor", bool)():  # whose numpy() is a segmentation fault
            plain = plain.new_zeros(plain.shape)
        dtype = str(value.dtype).split(".")[-1]
        array = np.array((plain.float() if dtype == "bfloat16" else plain).numpy(force=True))
        # Strides are promised of views; of what is computed, the memory format.
        view = getattr(value, "_base", None) is not None
        strides = tuple(value.stride()) if array.size else ()
        grad = (bool(value.requires_grad), bool(value.is_leaf))
        return Seen(array, dtype, strides, view, grad, self.rounded)

    def finish(self) -> dict[str, Any]:
        """Return all that was seen, the tensors at the end, and two orders of gradients."""
        for name, value in self.names.items():
            self.seen[f"{name} at the end"] = self._try(lambda v=value: self._look(v))
        self._differentiate()
        return self.seen

    def _differentiate(self) -> None:
        lib = self.library
        found = self._try(self._ends)
        if isinstance(found, Failed):
            self.seen["gradients"] = found
            return
        roots, leaves = found
        finite = all(bool(lib.isfinite(root.detach()).all()) for root in roots)
        if not roots or not leaves or not finite:
            return
        weights = [self._cotangent(root, n) for n, root in enumerate(roots)]
        grads = self._try(
            lambda: lib.autograd.grad(roots, leaves, weights, create_graph=True, allow_unused=True)
        )
        self.seen["gradients"] = grads if isinstance(grads, Failed) else "found"
        if isinstance(grads, Failed):
            return
        self.seen["the log of the hooks"] = list(self.log)
        for n, grad in enumerate(grads):
            self.seen[f"gradient {n}"] = self._look(grad)
        for name, value in self.names.items():  # before the next pass adds to them
            if hasattr(value, "detach") and getattr(value, "retains_grad", False):
                self.seen[f"{name}.grad"] = self._look(value.grad)
        self._again(grads, leaves)

    def _ends(self) -> tuple[list, list]:
        tensors = [v for v in self.names.values() if hasattr(v, "detach")]
        roots = [v for v in tensors if v.requires_grad and not v.is_leaf][-4:]
        return roots, [self.names[n] for n in self.leaves if self.names[n].requires_grad]

    def _again(self, grads: Any, leaves: list) -> None:
        known = [n for n, g in enumerate(grads) if g is not None and g.requires_grad and g.grad_fn]
        if not known:
            return
        weights = [self._cotangent(grads[n], 100 + n) for n in known]
        second = self._try(
            lambda: self.library.autograd.grad(
                [grads[n] for n in known], leaves, weights, allow_unused=True
            )
        )
        self.seen["second gradients"] = second if isinstance(second, Failed) else "found"
        if isinstance(second, Failed):
            return
        for n, grad in enumerate(second):
            self.seen[f"second gradient {n}"] = self._look(grad)

    def _cotangent(self, root: Any, seed: int) -> Any:
        name = str(root.dtype).split(".")[-1]
        return leaf(self.library, 0.0, 10 * seed + 6, name, tuple(root.shape))


def under(library: Any, dtype: str, call: Callable) -> Any:
    """Return what a call gives under a library's autocast."""
    with library.autocast("cpu", dtype=getattr(library, dtype)):
        return call()


def ran(library: Any, lines: list[str], nudge: float = 0.0) -> dict[str, Any]:
    """Return what a program gives on a library."""
    run = Run(library, nudge)
    for text in lines:
        run.line(text)
    return run.finish()


# Differences


def difference(convcore: Any, torch: Any, lines: list[str]) -> tuple[str, str] | None:
    """Return the first difference of a program as (its place, what it is)."""
    for found in _differences(convcore, torch, lines):
        place, what = found.place, found.what
        if what == LEAVE or _is_explained(found, lines):
            if place in lines:
                return difference(convcore, torch, [one for one in lines if one != place])
            if what == LEAVE or _is_explained_alone(convcore, torch, found, lines):
                return None  # what follows is drawn into it
        return (place, what) if found.is_sound() else None
    return None


class Difference(NamedTuple):
    """A difference of a program's results on the two libraries."""

    place: str  # a line of the program, or what is seen at its end
    what: str
    of_nothing: bool  # whether a tensor without elements is read or made there
    is_sound: Callable[[], bool]  # whether it is more than the last bits of the leaves make

    def kind(self) -> tuple[str, str]:
        """Return what it has in common with others: its place without numbers, what differs."""
        return re.sub(r"\d+", "", self.place), self.what.split()[0]


def _differences(convcore: Any, torch: Any, lines: list[str]) -> Iterator[Difference]:
    """Yield the differences of a program, explained or not, in their order."""
    ours, theirs = ran(convcore, lines), ran(torch, lines)
    unit = ROUNDED if any("under(" in line for line in lines) else 1.0
    nudged: list[dict] = []
    same_strides = True

    def is_sound(place: str, what: str) -> bool:
        if not what.startswith("value"):
            return True
        if not nudged:
            nudged.extend(ran(torch, lines, nudge * unit) for nudge in (1.0, -1.0, 3.0))
        return not _ill_conditioned(ours[place], theirs[place], [n.get(place) for n in nudged])

    for place in (*theirs, *(p for p in ours if p not in theirs)):
        what = _unlike(ours.get(place), theirs.get(place), place)
        same_strides = same_strides and _same_strides(ours.get(place), theirs.get(place))
        if what and not same_strides and re.search("stride|contiguous", f"{place} {what}"):
            return  # what lies differently was not a view: no strides are promised of it
        if what:
            sound = partial(is_sound, place, what)
            yield Difference(place, what, _is_of_nothing(place, lines, theirs), sound)


def _is_explained(found: Difference, lines: list[str]) -> bool:
    """Return whether there is a reason for a difference, in the lines that it may come from."""
    known = _lines_of(found.place, found.what, lines)
    text = f"{found.place}: {found.what}"
    return bool(program_differences.reason(known, text, lines, found.of_nothing))


def _is_explained_alone(convcore: Any, torch: Any, found: Difference, lines: list[str]) -> bool:
    """Return whether there is a reason for a difference in the shortest program that has it.

    What is seen at the end may come from any line: in a long one there is a reason for everything.
    """

    def alike(rest: list[str]) -> Difference | None:
        every = _differences(convcore, torch, rest)
        return next((one for one in every if one.kind() == found.kind() and one.is_sound()), None)

    if alike(lines) is None:
        return True
    short = minimal(alike, lines)
    return _is_explained(alike(short), short)


def _is_of_nothing(place: str, lines: list[str], seen: dict[str, Any]) -> bool:
    names = set(re.findall(r"\bv\d+\b", place))
    made = [seen.get(line) for line in lines if line == place or line.split(" = ")[0] in names]
    return any(isinstance(one, Seen) and not one.values.size for one in made)


def _lines_of(place: str, what: str, lines: list[str]) -> list[str]:
    """Return the lines that a difference may come from: an error's own, and what it was made of."""
    if place not in lines or what.startswith("value"):
        return lines
    if not re.search(r"a view of a leaf|unresolved|is_leaf\) is \(False|single memory", what):
        return [place]
    names = set(re.findall(r"\bv\d+\b", place))
    for line in reversed(lines):
        if line.split(" = ")[0] in names:
            names.update(re.findall(r"\bv\d+\b", line))
    return [line for line in lines if names.intersection(re.findall(r"\bv\d+\b", line))]


def _unlike(ours: Any, theirs: Any, place: str) -> str:
    if isinstance(theirs, Failed) or isinstance(ours, Failed):
        return _unlike_errors(ours, theirs, place)
    if isinstance(theirs, Seen) and isinstance(ours, Seen):
        return _unlike_tensors(ours, theirs, place)
    if "gradient" in place and (ours is None or theirs is None):  # no gradient, or one of zeros
        known = theirs if ours is None else ours
        wrong = isinstance(known, Seen) and (np.abs(np.nan_to_num(known.values)) > 3e-5).any()
        return "no gradient" if wrong else ""
    plain = isinstance(theirs, bool | int | float | str | list | tuple)
    if plain and str(ours) != str(theirs):
        return f"{ours}, not {theirs}"
    return ""


def _unlike_errors(ours: Any, theirs: Any, place: str) -> str:
    if isinstance(theirs, Failed) and "not implemented" in theirs.text:
        return "" if isinstance(ours, Failed) else LEAVE  # PyTorch has no kernel for it
    if isinstance(ours, Failed) and isinstance(theirs, Failed):
        same = theirs.kind.split()[0].lstrip("_") in ours.kind.split()
        if same and re.search(program_differences.IN_PLACE, place):
            return LEAVE  # PyTorch may have changed part of the tensor; here it is as before
        return "" if same else f"{ours.kind} ({ours.text}), not {theirs.kind} ({theirs.text})"
    if isinstance(ours, Failed):
        return f"raises {ours.kind}: {ours.text}"
    return f"does not raise {theirs.kind}: {theirs.text}"


def _unlike_tensors(ours: Seen, theirs: Seen, place: str) -> str:
    if ours.dtype != theirs.dtype:
        return f"dtype {ours.dtype}, not {theirs.dtype}"
    if ours.values.shape != theirs.values.shape:
        return f"size {ours.values.shape}, not {theirs.values.shape}"
    if "gradient" not in place and ours.grad != theirs.grad:
        return f"(requires_grad, is_leaf) is {ours.grad}, not {theirs.grad}"
    if "gradient" not in place and theirs.view and ours.view and _laid(ours) != _laid(theirs):
        return f"strides {ours.strides}, not {theirs.strides}"
    return _unlike_values(ours, theirs)


def _same_strides(ours: Any, theirs: Any) -> bool:
    known = isinstance(ours, Seen) and isinstance(theirs, Seen)
    return not known or (theirs.view and ours.view) or _laid(ours) == _laid(theirs)


def _laid(seen: Seen) -> list[int]:
    return [s for s, n in zip(seen.strides, seen.values.shape, strict=False) if n > 1]


def _unlike_values(ours: Seen, theirs: Seen) -> str:
    if ours.dtype in ("bool", "int64", "int32", "uint8"):
        bad = ours.values != theirs.values
    else:
        with np.errstate(all="ignore"):
            bad = ~_close(ours.values, theirs)
    if not bad.any():
        return ""
    spot = tuple(int(n) for n in np.argwhere(bad)[0])
    return f"value {ours.values[spot]} at {spot}, not {theirs.values[spot]}"


def _close(values: np.ndarray, seen: Seen) -> np.ndarray:
    relative = 2e-2 if seen.rounded else 3e-4
    absolute = (1e-2 if seen.rounded else 3e-5) * _scale(seen)
    return np.isclose(values, seen.values, relative, absolute, equal_nan=True)


def _scale(seen: Seen) -> float:
    sizes = np.abs(seen.values[np.isfinite(seen.values)])
    return 1.0 + (float(sizes.max()) if sizes.size else 0.0)


def _ill_conditioned(ours: Seen, theirs: Seen, nudged: list) -> bool:
    """Return whether the last bits of the leaves change PyTorch's result by as much."""
    others = [n.values for n in nudged if isinstance(n, Seen)]
    if len(others) < len(nudged):
        return True
    if any(o.shape != theirs.values.shape for o in others):
        return True
    with np.errstate(all="ignore"):
        base = theirs.values.astype(complex)
        moved = np.max([np.abs(o - base) for o in others], axis=0)
        gone = np.any([np.isfinite(o) != np.isfinite(base) for o in others], axis=0)
        away = np.abs(ours.values - base)
        bad = ~_close(ours.values, theirs)
        return bool((gone | (away <= (3 if theirs.rounded else 30) * moved))[bad].all())


def minimal(differs: Callable[[list[str]], Any], lines: list[str]) -> list[str]:
    """Return the shortest program, of lines left out, that still differs."""
    shorter = True
    while shorter:
        shorter = False
        for n in reversed(range(len(lines))):
            name = lines[n].split(" = ")[0] if " = " in lines[n] else ""
            used = name and any(re.search(rf"\b{name}\b", line) for line in lines[n + 1 :])
            rest = lines[:n] + lines[n + 1 :]
            if not used and differs(rest):
                lines, shorter = rest, True
    return lines


def compared(seed: int) -> str:
    """Return how a seed's program differs, with the shortest program that does; or ''."""
    import torch

    import convcore

    lines = Draw(torch, seed).lines
    if difference(convcore, torch, lines) is None:
        return ""
    lines = minimal(lambda rest: difference(convcore, torch, rest), lines)
    place, what = difference(convcore, torch, lines)
    return f"{'; '.join(lines)}  # {place}: {what}"


def told(first: int, end: int) -> tuple[int, int]:
    """Print how programs differ; return the next one's seed, and how many differ.

    In a child, which a program may end: PyTorch does not survive a hook on a view of what was
    changed in place.
    """
    done, code = _in_child(lambda seed: _tell(seed, compared(seed)), range(first, end))
    if not code:
        return end, sum(done)
    seed = first + len(done)
    _, alone = _in_child(_ours_alone, [seed])
    print(f"{seed}: {'convcore' if alone else 'PyTorch'} ends the process, code {alone or code}")
    return seed + 1, sum(done) + bool(alone)


def _tell(seed: int, what: str) -> bool:
    if what:
        print(f"{seed}: {what}", flush=True)
    return bool(what)


def _ours_alone(seed: int) -> bool:
    import torch

    import convcore

    ran(convcore, Draw(torch, seed).lines)
    return False


def _in_child(call: Callable[[int], bool], seeds: Sequence[int]) -> tuple[bytes, int]:
    """Return what calls gave in a child process, up to one that ended it, and its exit code."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            for seed in seeds:
                os.write(writer, bytes([call(seed)]))
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        done = pipe.read()
    return done, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="of the first program")
    parser.add_argument("--line", help="a program to run, its lines separated by semicolons")
    options = parser.parse_args()
    if options.line:
        return _once(options.line.split("; "))
    begin, found = time.monotonic(), 0
    seed, end = options.seed, options.seed + options.count
    while seed < end:
        seed, differ = told(seed, min(seed + BATCH, end))
        found += differ
    print(f"{options.count} programs, {found} differ, {time.monotonic() - begin:.0f} s")
    return bool(found)


def _once(lines: list[str]) -> int:
    import torch

    import convcore

    ours, theirs = ran(convcore, lines), ran(torch, lines)
    for place in theirs:
        print(place, f"  convcore: {ours.get(place)}", f"  torch: {theirs[place]}", sep="\n")
    print(difference(convcore, torch, lines) or "alike")
    return 0


if __name__ == "__main__":
    sys.exit(main())
