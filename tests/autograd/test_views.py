"""In-place operations and assignment on views: the base gets the right gradient, or they raise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from against_torch import agree, same
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

import convcore
from convcore.autograd.views import inplace

# Random programs: a few tensors, to which views, in-place operations and plain ones are applied.
# Besides PyTorch they are run on a model in which nothing is in place: each piece of memory is a
# PyTorch tensor that is replaced by another at every change, each view a tensor of places in it.

VIEWS: dict[str, Callable] = {
    "first": lambda t: t[0],
    "last": lambda t: t.select(-1, -1),
    "slice": lambda t: t[1:],
    "steps": lambda t: t[..., ::2],
    "transpose": lambda t: t.transpose(0, -1),
    "unsqueeze": lambda t: t.unsqueeze(0),
    "squeeze": lambda t: t.squeeze(),
    "flat": lambda t: t.view(-1),
    "reshape": lambda t: t.view(t.shape[::-1]),
    "diagonal": lambda t: t.diagonal(0, 0, -1),
    "expand": lambda t: t.expand(2, *t.shape),
    "chunk": lambda t: t.chunk(2)[-1],
    "split": lambda t: t.split(1, -1)[0],
    "unbind": lambda t: t.unbind(0)[-1],
    "all": lambda t: t[...],
    "permute": lambda t: t.permute(tuple(range(t.ndim))[::-1]),
}

PLAIN: dict[str, Callable] = {
    "double": lambda t, u: t * 2,
    "square": lambda t, u: t * t,
    "mul": lambda t, u: t * u,
    "add": lambda t, u: t + u,
    "exp": lambda t, u: (t * 0.01).exp(),
    "neg": lambda t, u: -t,
    "clone": lambda t, u: t.clone(),
    "sum": lambda t, u: t.sum(),
    "sum-first": lambda t, u: t.sum(0),
    "sum-last": lambda t, u: t.sum(-1),
    "mul-transposed": lambda t, u: (t.transpose(0, -1) * 2).transpose(0, -1),
    "index": lambda t, u: t[[0, -1, 0]],
    "contiguous": lambda t, u: t.contiguous() * 1,
}


def set_first(t: Any, u: Any) -> None:
    t[0] = u


def set_last(t: Any, u: Any) -> None:
    t[..., -1] = 3


def set_masked(t: Any, u: Any) -> None:
    t[t > 0.5] = 0.5


def set_indexed(t: Any, u: Any) -> None:
    t[[-1]] = u


def scale_slice(t: Any, u: Any) -> None:
    t[..., 1:] *= u


IN_PLACE: dict[str, Callable] = {
    "double": lambda t, u: t.mul_(2),
    "mul": lambda t, u: t.mul_(u),
    "add": lambda t, u: t.add_(u),
    "sub": lambda t, u: t.sub_(u),
    "copy": lambda t, u: t.copy_(u),
    "zero": lambda t, u: t.zero_(),
    "fill": lambda t, u: t.fill_(2),
    "masked-fill": lambda t, u: t.masked_fill_(t > 0, 1.5),
    "set-first": set_first,
    "set-last": set_last,
    "set-masked": set_masked,
    "set-indexed": set_indexed,
    "scale-slice": scale_slice,
}

NEEDS_AXES = {"first", "last", "slice", "steps", "transpose", "split", "chunk", "unbind", "index"}
NEEDS_AXES |= {"sum-first", "sum-last", "mul-transposed"}
NEEDS_AXES |= {"set-first", "set-last", "set-indexed", "scale-slice"}
NEEDS_TWO_AXES = {"diagonal"}
TAKES_ANOTHER = {"mul", "add", "sub", "copy", "set-first", "set-indexed", "scale-slice"}
SHAPE = (3, 4)
LEAVES = 2  # the first tensors of a program; then one without gradient, and computed ones

Step = tuple[str, str, int, int]  # the kind, its name, the tensor, another one


class Part:
    """A tensor of the model: a piece of memory, and which places of it."""

    def __init__(self, memory: list, places: Any):
        self.memory = memory
        self.places = places

    def value(self) -> Any:
        return self.memory[0][self.places]

    def change(self, value: Any) -> None:
        places = self.places.reshape(-1)
        self.memory[0] = self.memory[0].index_put((places,), value.reshape(-1))


def new_part(torch: Any, value: Any) -> Part:
    places = torch.arange(value.numel()).reshape(value.shape)
    return Part([value.reshape(-1)], places)


def run_model(torch: Any, parts: list[Part], step: Step) -> None:
    """Do one step on the model."""
    kind, name, i, j = step
    part = parts[i]
    if kind == "view":
        parts.append(Part(part.memory, VIEWS[name](part.places)))
    elif kind == "plain":
        parts.append(new_part(torch, PLAIN[name](part.value(), parts[j].value())))
    else:
        if len(set(part.places.flatten().tolist())) < part.places.numel():
            raise RuntimeError("one place is written twice")
        changed = part.value().clone()
        IN_PLACE[name](changed, parts[j].value())
        part.change(changed)


def run(tensors: list, step: Step) -> None:
    """Do one step on tensors of a library."""
    kind, name, i, j = step
    if kind == "view":
        tensors.append(VIEWS[name](tensors[i]))
    elif kind == "plain":
        tensors.append(PLAIN[name](tensors[i], tensors[j]))
    else:
        IN_PLACE[name](tensors[i], tensors[j])


def start(lib: Any) -> list:
    """Return the tensors that every program starts with."""
    made = []
    for n in range(LEAVES + 1):
        values = np.linspace(-1 - n, 1.5, 12).reshape(SHAPE)
        made.append(lib.from_numpy(values).requires_grad_(n < LEAVES))
    return [*made, made[0] * 1, made[1] * 2]


def finish(lib: Any, leaves: list, values: list) -> list:
    """Return the leaves' gradients of a weighted sum of all tensors."""
    total = 0
    for n, value in enumerate(values):
        weights = np.cos(np.arange(value.numel()) + n).reshape(tuple(value.shape))
        total = total + (value * lib.from_numpy(np.asarray(weights))).sum()
    if not total.requires_grad:
        return []
    found = lib.autograd.grad(total, leaves[:LEAVES], allow_unused=True)
    return [lib.zeros(SHAPE, dtype=lib.float64) if g is None else g for g in found]


def outcome(lib: Any, program: list[Step]) -> tuple[list, list, list] | RuntimeError:
    """Return the values, the gradients and which tensors need one; or the error."""
    tensors = start(lib)
    leaves = tensors[:LEAVES]
    try:
        for step in program:
            run(tensors, step)
        grads = finish(lib, leaves, tensors)
    except RuntimeError as error:
        return error
    return tensors, grads, [t.requires_grad for t in tensors]


@st.composite
def programs(draw: st.DrawFn, torch: Any) -> tuple[list[Step], list]:
    """Draw a program, and what the model makes of it."""
    tensors = start(torch)
    leaves = tensors[:LEAVES]
    parts = [new_part(torch, t) for t in tensors]
    program: list[Step] = []
    for _ in range(draw(st.integers(2, 9))):
        kind = draw(st.sampled_from(["view", "view", "plain", "in place", "in place"]))
        table = {"view": VIEWS, "plain": PLAIN, "in place": IN_PLACE}[kind]
        name = draw(st.sampled_from(sorted(table)))
        candidates = list(range(len(parts)))
        if kind == "in place" and draw(st.integers(0, 19)) != 7:  # mostly of what may be changed
            fixed = [part.memory for part in parts[:LEAVES]]
            candidates = [n for n in candidates if not any(parts[n].memory is m for m in fixed)]
        i = draw(st.sampled_from(candidates))
        shape = tuple(parts[i].places.shape)
        if len(shape) < (name in NEEDS_AXES) + 2 * (name in NEEDS_TWO_AXES) or 0 in shape:
            continue
        fitting = [n for n, p in enumerate(parts) if fits(p, parts[i], kind, name)]
        if name in TAKES_ANOTHER and not fitting:
            continue
        j = draw(st.sampled_from(fitting)) if name in TAKES_ANOTHER else i
        step = kind, name, i, j
        try:
            run_model(torch, parts, step)
        except RuntimeError:  # a view that cannot be made, a place written twice
            continue
        program.append(step)
    values = [part.value() for part in parts]
    return program, [values, finish(torch, leaves, values)]


def fits(other: Part, part: Part, kind: str, name: str) -> bool:
    """Return whether another tensor can stand beside one; an assigned one lies elsewhere."""
    target = tuple(part.places.shape)
    if name == "set-first":
        target = target[1:]
    elif name == "set-indexed":
        target = (1, *target[1:])
    elif name == "scale-slice":
        target = (*target[:-1], max(target[-1] - 1, 0))
    if kind == "in place" and other.memory is part.memory:
        return False
    try:
        joint = np.broadcast_shapes(tuple(other.places.shape), target)
    except ValueError:
        return False
    return joint == target or kind == "plain"


@given(data=st.data())
@examples(300)
def test_programs_of_views_and_in_place_operations_are_right_or_raise(torch, data):
    """What PyTorch computes is computed; where it raises, convcore raises or agrees with the model.

    The model and PyTorch agree wherever PyTorch does not raise, which checks the model.
    """
    program, (values, grads) = data.draw(programs(torch), label="program")
    theirs = outcome(torch, program)
    ours = outcome(convcore, program)
    if isinstance(theirs, RuntimeError):
        if isinstance(ours, RuntimeError):
            return
    else:
        assert not isinstance(ours, RuntimeError), ours
        compare(theirs[0], values, theirs[1], grads)
        assert ours[2] == theirs[2]
    compare(ours[0], values, ours[1], grads)


def compare(values: list, expected: list, grads: list, expected_grads: list) -> None:
    for n, (value, other) in enumerate(zip(values, expected, strict=True)):
        same(value, other, f"value {n}")
    for n, (grad, other) in enumerate(zip(grads, expected_grads, strict=True)):
        same(grad, other, f"gradient {n}")


# Programs in which some steps are not recorded: here PyTorch alone is the measure.

UNRECORDED = {"detach": lambda t: t.detach()}


def run_guarded(lib: Any, tensors: list, step: tuple) -> None:
    """Do one step, under no_grad if it says so."""
    *step, recorded = step
    if step[0] == "detach":
        tensors.append(tensors[step[2]].detach())
        return
    with lib.set_grad_enabled(recorded):
        run(tensors, tuple(step))


@st.composite
def guarded_programs(draw: st.DrawFn, torch: Any) -> list[tuple]:
    """Draw a program that PyTorch runs to its end, some of its steps under no_grad."""
    tensors = start(torch)
    program: list[tuple] = []
    for _ in range(draw(st.integers(2, 8))):
        kind = draw(st.sampled_from(["view", "view", "plain", "in place", "in place", "detach"]))
        table = {"view": VIEWS, "plain": PLAIN, "in place": IN_PLACE, "detach": UNRECORDED}[kind]
        name = draw(st.sampled_from(sorted(table)))
        i = draw(st.integers(0, len(tensors) - 1))
        j = draw(st.integers(0, len(tensors) - 1)) if name in TAKES_ANOTHER else i
        if i != j and shares_memory(tensors[i], tensors[j]):
            continue
        if kind == "in place" and 0 in tensors[i].stride():  # PyTorch lets some of these pass
            continue
        step = kind, name, i, j, draw(st.sampled_from([True, True, False]))
        try:
            run_guarded(torch, tensors, step)
        except (RuntimeError, IndexError, TypeError):
            continue
        program.append(step)
    return program


def shares_memory(t: Any, u: Any) -> bool:
    return t.untyped_storage().data_ptr() == u.untyped_storage().data_ptr()


@given(data=st.data())
@examples(200)
def test_programs_with_steps_that_are_not_recorded_like_torch(torch, data):
    program = data.draw(guarded_programs(torch), label="program")
    found = {}
    for lib in (torch, convcore):
        tensors = start(lib)
        leaves = tensors[:LEAVES]
        for step in program:
            run_guarded(lib, tensors, step)
        versions = [t._version for t in tensors]
        try:
            grads: Any = finish(lib, leaves, tensors)
        except RuntimeError:
            grads = None
        found[lib] = tensors, grads, versions
    theirs, ours = found[torch], found[convcore]
    for n, (value, other) in enumerate(zip(ours[0], theirs[0], strict=True)):
        same(value, other, f"value {n}")
    assert ours[2] == theirs[2]
    if theirs[1] is None:  # a view that PyTorch restricts; or both refuse
        return
    assert ours[1] is not None
    for n, (grad, other) in enumerate(zip(ours[1], theirs[1], strict=True)):
        same(grad, other, f"gradient {n}")


# One case each

CASES: dict[str, Callable] = {}


def case(function: Callable) -> Callable:
    """Collect a function of (lib, x, z) that both libraries must agree on."""
    CASES[function.__name__] = function
    return function


@case
def row_is_assigned(lib, x, z):
    y = x * 2
    y[0] = z[0] * 3
    return y * y


@case
def column_is_scaled(lib, x, z):
    y = x * 2
    y[:, 1] *= 2
    return y * y


@case
def column_is_scaled_by_a_tensor(lib, x, z):
    y = x * 2
    y[:, 1] *= z[:, 0]
    return y * y


@case
def row_of_a_constant_is_assigned(lib, x, z):
    y = lib.zeros(3, 4, dtype=lib.float64)
    y[0] = x[1] * z[2]
    y[1:, 2] += z[0, 0]
    return y * y, y[2]


@case
def diagonal_is_added_to(lib, x, z):
    y = x * 2
    y.diagonal().add_(z[0, :3])
    return y * y


@case
def two_views_one_after_the_other(lib, x, z):
    y = x * 2
    first, second = y[0], y[:, 0]
    first *= z[0]
    second += z[:, 1]
    first *= 3
    return y * y, first * 2, second * 3


@case
def two_overlapping_views(lib, x, z):
    y = x * 2
    whole, part = y.view(-1), y[1:, 1:]
    part.mul_(z[1:, 1:])
    whole.add_(1)
    part.mul_(2)
    return y, whole * y.view(-1), part


@case
def view_of_a_view_of_a_view(lib, x, z):
    y = x * 2
    y.t()[1:].unsqueeze(0)[0, 1].mul_(z[:, 0])
    return y * y


@case
def base_changes_and_then_a_view_is_used(lib, x, z):
    y = x * 2
    row = y[1]
    y.mul_(z)
    return row * row, row


@case
def base_changes_and_then_its_view_changes(lib, x, z):
    y = x * 2
    row = y[1]
    y.mul_(z)
    row.mul_(z[0])
    y.add_(x)
    return y * y, row * 2


@case
def base_is_overwritten(lib, x, z):
    y = x * 2
    row = y[1]
    y.copy_(z)
    return y * row


@case
def base_is_zeroed(lib, x, z):
    y = x * 2
    row = y[1]
    row.mul_(z[1])
    y.zero_()
    y[0] += z[0]
    return y, row


@case
def view_is_copied_into(lib, x, z):
    y = x * 2
    y[1:, :2].copy_(z[:2, 1:3] * z[0, 0])
    return y * y


@case
def transposed_view_is_changed(lib, x, z):
    y = x * 2
    w = y.t()
    w.mul_(z.t())
    return y * y, w


@case
def mask_of_a_view_is_assigned(lib, x, z):
    y = x * 2
    w = y[1:]
    w[w > 0] = 0.5
    w[0][z[0] > 0] = z[0, 0]
    return y * y, w


@case
def indexed_part_of_a_view_is_assigned(lib, x, z):
    y = x * 2
    y[:, 1:][[0, 2]] = z[:2, :3]
    y[..., 0].index_add_(0, lib.tensor([0, 0]), z[0, :2])
    return y * y


@case
def loop_that_fills_rows(lib, x, z):
    y = lib.zeros(3, 4, dtype=lib.float64)
    y[0] = x[0]
    for n in range(1, 3):
        y[n] = y[n - 1].clone() * z[n] + x[n]
    return y


@case
def loop_that_fills_a_stack(lib, x, z):
    y = lib.empty(3, 4, dtype=lib.float64)
    for n, (row, other) in enumerate(zip(x, z, strict=True)):
        y[n] = row * other
    return y * y


@case
def base_of_a_reshaped_gradient(lib, x, z):
    """The gradient that arrives is a sum's: it does not lie in memory as the base does."""
    y = x * 2
    y.view(-1)[2:5].mul_(z.view(-1)[:3])
    return y.sum(0)


@case
def cloned_view_is_on_its_own(lib, x, z):
    y = x * 2
    w = y[0].clone()
    w.mul_(z[0])
    return y, w


@case
def view_of_a_slice_with_steps(lib, x, z):
    y = x * 2
    y[::2, ::3] = z[:2, :2]
    return y * y


@case
def complex_part_is_changed(lib, x, z):
    y = (x * (1 + 2j)).clone()
    lib.view_as_real(y)[..., 0].mul_(z)
    return lib.view_as_real(y * y)


@case
def gradient_of_what_was_before_is_kept(lib, x, z):
    y = x * 2
    before = y * 3  # saves nothing of y
    y[0] = z[0]
    return before + y


@pytest.mark.parametrize("name", CASES)
def test_view_in_place_like_torch(torch, rng, seed, name):
    x, z = rng.normal(size=(3, 4)), rng.normal(size=(3, 4))
    agree(torch, CASES[name], x, z, seed=seed)


@pytest.mark.parametrize("layout", ["transposed", "sliced"])
@pytest.mark.parametrize("name", CASES)
def test_view_in_place_of_other_layouts_like_torch(torch, rng, seed, name, layout):
    """The base's axes do not lie in order, so what is a view of it is none of a plain gradient."""

    def function(lib, x, z):
        try:
            return CASES[name](lib, x, z)
        except RuntimeError as error:
            assert "compatible" in str(error)
            return x * 1

    x, z = rng.normal(size=(4, 3)).T, rng.normal(size=(6, 8))[::2, ::2]
    agree(torch, function, *((x, z) if layout == "transposed" else (z, x)), seed=seed)


# Views that one function returns together, which PyTorch lets nobody change.

MANY_VIEWS: dict[str, Callable] = {
    "split": lambda y: y.split(2)[0],
    "chunk": lambda y: y.chunk(2)[1],
    "unbind": lambda y: y.unbind()[0],
    "row": lambda y: next(iter(y)),
    "view-of-one": lambda y: y.chunk(2)[0][0],
}


@pytest.mark.parametrize("name", MANY_VIEWS)
def test_views_of_one_node_may_not_change_in_place(torch, name):
    for lib in (convcore, torch):
        y = lib.ones(4, 2, requires_grad=True) * 1
        with pytest.raises(RuntimeError, match="is a view and is being modified inplace"):
            MANY_VIEWS[name](y).mul_(2)
        assert y.tolist() == [[1.0, 1.0]] * 4
        plain = lib.ones(4, 2)
        MANY_VIEWS[name](plain).mul_(2)  # nothing is recorded
        assert plain.max() == 2


def test_views_of_one_node_are_lost_with_their_base(torch):
    for lib in (convcore, torch):
        y = lib.ones(4, 2, requires_grad=True) * 1
        part, _ = y.chunk(2)
        y.mul_(2)
        with pytest.raises(RuntimeError, match="is a view and its base or another view of its"):
            part.grad_fn  # noqa: B018


def test_hooks_of_a_view_are_left_out_after_a_change(torch):
    for lib in (convcore, torch):
        x = lib.ones(3, requires_grad=True)
        y = x * 1
        view, seen = y[:2], []
        view.register_hook(lambda grad, seen=seen: seen.append("before"))
        view.mul_(3)
        view.register_hook(lambda grad, seen=seen: seen.append("after"))
        (y.sum() + view.sum()).backward()
        assert seen == ["after"]
        assert x.grad.tolist() == [6.0, 6.0, 1.0]


# What raises


def change_leaf(lib, x):
    x.mul_(2)


def change_view_of_leaf(lib, x):
    x[0].mul_(2)


def assign_to_leaf(lib, x):
    x[0] = 1


def assign_mask_of_leaf(lib, x):
    x[x > 0] = 1


def assign_view_of_a_view_of_leaf(lib, x):
    x.t()[0][1:] = 1


def change_expanded(lib, x):
    (x * 1)[:1].expand(3, 4).add_(1)


def change_what_was_saved(lib, x):
    y = x * 1
    z = y * y
    y.add_(1)
    z.sum().backward()


def change_base_of_what_was_saved(lib, x):
    y = x * 1
    z = y[0] * y[0]
    y.zero_()
    z.sum().backward()


def change_view_of_what_was_saved(lib, x):
    y = x * 1
    z = y.exp()
    z[0] = 1
    z.sum().backward()


def change_detached_of_what_was_saved(lib, x):
    y = x * 1
    z = y * y
    y.detach().zero_()
    z.sum().backward()


def change_under_no_grad_what_was_saved(lib, x):
    y = x * 1
    z = y * y
    with lib.no_grad():
        y[0] = 0
    z.sum().backward()


def change_view_made_under_no_grad(lib, x):
    y = x * 1
    with lib.no_grad():
        row = y[0]
    row.mul_(2)


def detach_a_view(lib, x):
    (x * 1)[0].detach_()


def grow_by_broadcasting(lib, x):
    (x * 1)[0].add_(lib.zeros(2, 4, dtype=lib.float64))


def store_complex_in_real(lib, x):
    (x * 1).mul_(1j)


RAISING = [
    change_leaf,
    change_view_of_leaf,
    assign_to_leaf,
    assign_mask_of_leaf,
    assign_view_of_a_view_of_leaf,
    change_expanded,
    change_what_was_saved,
    change_base_of_what_was_saved,
    change_view_of_what_was_saved,
    change_detached_of_what_was_saved,
    change_under_no_grad_what_was_saved,
    change_view_made_under_no_grad,
    detach_a_view,
    grow_by_broadcasting,
    store_complex_in_real,
]


@pytest.mark.parametrize("function", RAISING, ids=lambda function: function.__name__)
def test_wrong_in_place_operations_raise_like_torch(torch, function):
    for lib in (torch, convcore):
        x = lib.ones(3, 4, dtype=lib.float64, requires_grad=True)
        with pytest.raises(RuntimeError) as error:
            function(lib, x)
        if lib is torch:
            expected = str(error.value)
    # Whole sentences may differ after the point where the cause is named.
    assert str(error.value)[:35] == expected[:35]


def test_saved_by_nobody_may_change(torch):
    for lib in (torch, convcore):
        x = lib.ones(3, requires_grad=True)
        y = x * 2
        z = y + 1
        y.mul_(5)
        (z + y).sum().backward()
        assert x.grad.tolist() == [12.0] * 3


def test_leaf_may_change_under_no_grad(torch):
    for lib in (torch, convcore):
        x = lib.ones(3, requires_grad=True)
        view = x[1:]
        with lib.no_grad():
            x[0] = 5
            x.mul_(2)
        assert x.tolist() == [10, 2, 2]
        assert x._version == 2
        assert x.is_leaf
        assert view.tolist() == [2, 2]
        view.sum().backward()
        assert x.grad.tolist() == [0, 1, 1]


def test_constant_becomes_part_of_the_graph(torch):
    for lib in (torch, convcore):
        x = lib.ones(2, requires_grad=True)
        y = lib.zeros(2, 2)
        row = y[0]
        y[0] = x
        assert [y.requires_grad, row.requires_grad, y.is_leaf] == [True, True, False]
        assert [type(t.grad_fn).__name__ for t in (y,)] == ["CopySlices"]
        (row * 3).sum().backward()
        assert x.grad.tolist() == [3, 3]


def test_hooks_see_the_version_they_were_registered_on(torch):
    """A hook stays with what the tensor was; one registered after the change is on the new one."""
    for lib in (torch, convcore):
        seen = []
        x = lib.ones(3, requires_grad=True)
        y = x * 2
        y.register_hook(lambda grad, seen=seen: seen.append(("old", grad.tolist())))
        y[0] = 7
        y.register_hook(lambda grad, seen=seen: seen.append(("new", grad.tolist())))
        y.mul_(3)
        y.retain_grad()
        y.sum().backward()
        assert seen == [("new", [3, 3, 3]), ("old", [0, 3, 3])]
        assert x.grad.tolist() == [0, 6, 6]
        assert y.grad.tolist() == [1, 1, 1]


def test_hooks_of_a_changed_view_see_its_second_gradient(torch):
    """The view's new values are what the operation has saved for its backward pass."""
    for lib in (torch, convcore):
        x = lib.tensor([0.5, 0.25], requires_grad=True)
        y = (x * 1).view(2, 1).reciprocal_()
        seen = []
        y.register_hook(lambda grad, seen=seen: (seen.append(grad.flatten().tolist()), -grad)[1])
        (first,) = lib.autograd.grad(y.sum(), x, create_graph=True)
        (second,) = lib.autograd.grad(first.sum(), x)
        assert seen == [[1, 1], [4, 8]]
        assert second.tolist() == [16, 128]


def test_hook_may_replace_the_gradient_of_a_changed_view(torch):
    for lib in (torch, convcore):
        x = lib.ones(2, 2, requires_grad=True)
        y = x * 1
        row = y[0]
        row.mul_(3)
        row.register_hook(lambda grad: grad * 10)
        (row * 2).sum().backward()
        assert x.grad.tolist() == [[60, 60], [0, 0]]


def test_versions_are_shared_by_all_views(torch):
    for lib in (torch, convcore):
        x = lib.zeros(2, 3)
        same_memory = [x.view(6), x[0], x.t(), x.detach(), x[None], x.chunk(2)[1], x.unbind()[0]]
        x.add_(1)
        x[0, 0] = 4
        x[x > 3] = 0
        assert {t._version for t in (x, *same_memory)} == {3}
        copies = [x.clone(), x[[0]], x.t().reshape(6), x.flip(0), x.data]
        assert {t._version for t in copies} == {0}


def test_bases_are_freed_with_their_views():
    import gc
    import weakref

    gc.disable()
    try:
        x = convcore.ones(2, 3, requires_grad=True)
        y = x * 1
        y[0] *= 2
        rows = [y[n] for n in range(2)]
        for row in rows:
            row += 1
        gone = weakref.ref(y)
        y.sum().backward()
        del y, row, rows
        assert gone() is None
    finally:
        gc.enable()


def test_views_of_views_cost_no_more_than_views():
    x = convcore.ones(4, requires_grad=True)
    y = z = x * 1
    for n in range(5_000):
        z = z[:] if n % 2 else z.view(2, -1).view(-1)
        z.mul_(-1)
    y.sum().backward()
    assert x.grad.tolist() == [1.0] * 4


def test_history_of_a_changed_view_names_the_region(torch):
    for lib in (convcore, torch):
        y = lib.ones(3, requires_grad=True) * 1
        one, other = y[0], y[1:]
        one.mul_(2)
        assert [t.grad_fn.name() for t in (one, other)] == ["AsStridedBackward0"] * 2


def test_overlapping_elements_are_not_changed_where_it_is_recorded():
    y = convcore.ones(3, requires_grad=True) * 1
    windows = y.unfold(0, 2, 1)
    with pytest.raises(RuntimeError, match="refers to a single memory location"):
        windows.mul_(2)
    with convcore.no_grad():
        windows.zero_()
    assert y.tolist() == [0, 0, 0]


def test_part_of_overlapping_elements_is_not_changed_where_it_is_recorded():
    array = np.lib.stride_tricks.sliding_window_view(np.ones(3), 2, writeable=True)
    windows = convcore.from_numpy(array)
    with pytest.raises(RuntimeError, match="refers to a single memory location"):
        windows[0].mul_(convcore.ones(2, dtype=convcore.float64, requires_grad=True))
    windows[0].mul_(2)
    assert windows.tolist() == [[2, 2], [2, 1]]


def test_overlapping_views_follow_their_base(torch, rng):
    values = rng.standard_normal((2, 5))

    def gradients(lib):
        x = lib.from_numpy(values.copy()).requires_grad_()
        y = x * 1
        windows, rows = y.unfold(1, 3, 1), y[:1].expand(4, 5)
        y.mul_(2)
        total = (windows * windows).sum() + (rows * rows * rows).sum()
        (grad,) = lib.autograd.grad(total, x, create_graph=True)
        (again,) = lib.autograd.grad((grad * grad).sum(), x)
        return [grad, again]

    for ours, theirs in zip(gradients(convcore), gradients(torch), strict=True):
        same(ours, theirs, "gradient")


def test_base_whose_data_were_replaced_is_not_differentiated_wrongly():
    x = convcore.ones(3, requires_grad=True)
    y = x * 1
    part = y[1:]
    y.data = convcore.zeros(3)
    with pytest.raises(RuntimeError, match="the data of one of them was replaced"):
        part.mul_(2)


def test_function_that_saves_a_view_of_what_it_replaces_is_not_differentiated_wrongly():
    y = convcore.ones(2, requires_grad=True) * 3
    inplace(y, lambda t: (t.view(1, 2) * t.view(1, 2)).view(2))
    assert y.tolist() == [9.0, 9.0]
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


SHIFTS = {
    "add_": lambda x: x[1:].add_(x[:-1]),
    "add_ with alpha": lambda x: x[1:].add_(x[:-1], alpha=2),
    "addcmul_": lambda x: x[1:].addcmul_(x[:-1], x[1:]),
    "assignment": lambda x: x.__setitem__(slice(1, None), x[:-1]),
    "copy_": lambda x: x[1:].copy_(x[:-1]),
    "index_add_": lambda x: x[1:].index_add_(0, convcore.arange(11), x[:-1]),
    "of one element": lambda x: x.add_(x[:1]),
    "out": lambda x: convcore.exp(x[:-1], out=x[1:]),
    "turned": lambda x: x[:9].view(3, 3).mul_(x[:9].view(3, 3).t()),
}


@pytest.mark.parametrize("name", SHIFTS)
def test_writing_where_a_part_is_read_is_refused(name):
    x = convcore.arange(12.0)
    before = x.tolist()
    with pytest.raises(RuntimeError, match="some elements of the input tensor and the written-to"):
        SHIFTS[name](x)
    assert x.tolist() == before


# What PyTorch takes too: nothing shared, all of it shared, or tensors with gaps.
ALLOWED = {
    "all": lambda x: x.add_(x),
    "another view of all": lambda x: x[:4].mul_(x[:4]),
    "apart": lambda x: x[:4].add_(x[4:8]),
    "gaps": lambda x: x[::2].add_(x[1::2]),
    "a copy": lambda x: x[1:].add_(x[:-1].clone()),
    "flipped": lambda x: x.copy_(x.flip(0)),
    "a number": lambda x: x[1:].masked_fill_(x[1:] > 2, x[3]),
    "empty": lambda x: x[:0].add_(x[:0]),
}


@pytest.mark.parametrize("name", ALLOWED)
def test_other_writes_into_shared_memory_agree_with_pytorch(torch, name):
    ours, theirs = convcore.arange(12.0), torch.arange(12.0)
    for x in (ours, theirs):
        ALLOWED[name](x)
    assert ours.tolist() == theirs.tolist()


def test_tensors_with_gaps_are_read_before_they_are_written():
    x = convcore.arange(8.0)
    x[::2][1:].add_(x[::2][:-1])
    assert x.tolist() == [0, 1, 2, 3, 6, 5, 10, 7]


RESHAPED = {"quantile": lambda m, x: m.quantile(x, 0.5, 0)}


@pytest.mark.parametrize("name", RESHAPED)
def test_a_result_that_is_reshaped_inside_keeps_its_hooks_when_it_is_changed(torch, name):
    found = []
    for m in (torch, convcore):
        x = (m.arange(9.0).reshape(3, 3) ** 2 + 1).requires_grad_()
        y = RESHAPED[name](m, x)
        assert y._base is None
        y.register_hook(lambda grad: 3 * grad)
        y.mul_(2)
        y.sum().backward()
        found.append(x.grad.numpy())
    np.testing.assert_allclose(found[1], found[0], rtol=1e-4, atol=1e-4)


def test_a_tensor_changed_by_a_function_without_gradient_becomes_a_leaf():
    _, mean = convcore.var_mean(convcore.ones(3, 4, requires_grad=True), 0)
    assert mean.output_nr == 1
    mean.logical_not_()
    assert (mean.is_leaf, mean.grad_fn, mean.requires_grad, mean.output_nr) == (
        True,
        None,
        False,
        0,
    )
