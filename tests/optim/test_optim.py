"""Optimizers: the same steps, states and errors as PyTorch's, and hooks around them."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from against_torch import same_error
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

import convcore
from convcore import nn, optim
from convcore.optim.optimizer import (
    Optimizer,
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
    required,
)

OPTIONS = st.fixed_dictionaries(
    {
        "lr": st.sampled_from([0.0, 0.01, 0.3]),
        "momentum": st.sampled_from([0, 0.9, 0.5]),
        "dampening": st.sampled_from([0, 0.25]),
        "weight_decay": st.sampled_from([0, 0.1]),
        "nesterov": st.booleans(),
        "maximize": st.booleans(),
    }
).filter(lambda o: not o["nesterov"] or (o["momentum"] and not o["dampening"]))


def leaf(values, library=convcore):
    """A leaf that requires grad, in PyTorch or here."""
    tensor = library.from_numpy(np.array(values))
    tensor.requires_grad = True
    return tensor


def grown(parameter, gradient, library=convcore):
    """The parameter, with a gradient."""
    parameter.grad = library.from_numpy(np.array(gradient, parameter.detach().numpy().dtype))
    return parameter


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "float16"])
def test_sgd_equals_pytorch(torch, dtype, seed):
    tolerance = {"float16": 4e-3, "float64": 1e-13}.get(dtype, 1e-5)

    @examples(60)
    @given(OPTIONS, st.lists(st.booleans(), min_size=1, max_size=4))
    def check(options, steps):
        rng = np.random.default_rng(seed)
        start = [rng.standard_normal(shape).astype(dtype) for shape in ((2, 3), (), (4,))]
        results = []
        draws = [[rng.standard_normal(a.shape).astype(dtype) for a in start] for _ in steps]
        for library in (torch, convcore):
            parameters = [leaf(a, library) for a in start]
            optimizer = library.optim.SGD(
                [{"params": parameters[:2]}, {"params": parameters[2], "lr": 0.5}], **options
            )
            for complete, gradients in zip(steps, draws, strict=True):
                optimizer.zero_grad()
                for parameter, gradient in zip(parameters, gradients, strict=True):
                    if complete or parameter is parameters[1]:
                        grown(parameter, gradient, library)
                optimizer.step()
            results.append([p.detach().numpy() for p in parameters])
        for theirs, ours in zip(*results, strict=True):
            assert theirs.dtype == ours.dtype
            np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)

    check()


def test_plain_sgd_is_its_formula_rounded(rng):
    values, gradient = rng.standard_normal((2, 50)).astype(np.float32)
    parameter = grown(leaf(values), gradient)
    optim.SGD([parameter], lr=0.1).step()
    expected = values - np.float32(0.1) * gradient
    error = np.abs(parameter.detach().numpy() - expected)  # the product may not be rounded
    assert (error <= np.spacing(np.maximum(np.abs(values), np.abs(gradient)))).all()


@pytest.mark.parametrize("layout", ["contiguous", "channels_last", "gradient apart", "gaps"])
def test_large_parameters_take_the_same_step_part_by_part(layout, rng):
    shape = (3, 5, 70, 90)
    values, gradient = rng.standard_normal((2, *shape)).astype(np.float32)
    parameter = convcore.from_numpy(values.copy())
    if layout == "channels_last":
        parameter = parameter.contiguous(memory_format=convcore.channels_last)
    elif layout == "gaps":
        parameter = convcore.from_numpy(np.repeat(values, 2, axis=3)[..., ::2])
    parameter.requires_grad = True
    parameter.grad = convcore.from_numpy(gradient)
    if layout == "channels_last":
        parameter.grad = parameter.grad.contiguous(memory_format=convcore.channels_last)
    elif layout == "gradient apart":
        parameter.grad = convcore.from_numpy(np.asfortranarray(gradient))
    optimizer = optim.SGD([parameter], lr=0.5, momentum=0.5, weight_decay=0.25)
    velocity = 0
    for _ in range(2):
        optimizer.step()
        velocity = np.float32(0.5) * velocity + (gradient + np.float32(0.25) * values)
        values = values - np.float32(0.5) * velocity
    assert np.array_equal(parameter.detach().numpy(), values)


ADAM_OPTIONS = st.fixed_dictionaries(
    {
        "lr": st.sampled_from([0.0, 0.01, 0.3]),
        "betas": st.sampled_from([(0.9, 0.999), (0.0, 0.5), (0.3, 0.0)]),
        "eps": st.sampled_from([1e-8, 0.1]),
        "weight_decay": st.sampled_from([0, 0.1]),
        "amsgrad": st.booleans(),
        "maximize": st.booleans(),
    }
)
RMSPROP_OPTIONS = st.fixed_dictionaries(
    {
        "lr": st.sampled_from([0.0, 0.01, 0.3]),
        "alpha": st.sampled_from([0.99, 0.5]),
        "eps": st.sampled_from([1e-3, 0.1]),
        "weight_decay": st.sampled_from([0, 0.1]),
        "momentum": st.sampled_from([0, 0.9]),
        "centered": st.booleans(),
        "maximize": st.booleans(),
    }
)
OPTIONS_OF = {"Adam": ADAM_OPTIONS, "AdamW": ADAM_OPTIONS, "RMSprop": RMSPROP_OPTIONS}


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("name", OPTIONS_OF)
def test_optimizer_equals_pytorch_over_many_steps(torch, name, dtype, seed):
    tolerance = 1e-10 if dtype == "float64" else 2e-4

    @examples(12)
    @given(OPTIONS_OF[name], st.lists(st.booleans(), min_size=20, max_size=20))
    def check(options, steps):
        rng = np.random.default_rng(seed)
        start = [rng.standard_normal(shape).astype(dtype) for shape in ((2, 3), (), (4,))]
        draws = [[rng.standard_normal(a.shape).astype(dtype) for a in start] for _ in steps]
        results = []
        for library in (torch, convcore):
            parameters = [leaf(a, library) for a in start]
            optimizer = getattr(library.optim, name)(
                [{"params": parameters[:2]}, {"params": parameters[2], "lr": 0.02}], **options
            )
            for complete, gradients in zip(steps, draws, strict=True):
                optimizer.zero_grad()
                for parameter, gradient in zip(parameters, gradients, strict=True):
                    if complete or parameter is parameters[1]:
                        grown(parameter, gradient, library)
                optimizer.step()
            remembered = plain(optimizer.state_dict()["state"])
            results.append(([p.detach().numpy() for p in parameters], remembered))
        for theirs, ours in zip(results[0][0], results[1][0], strict=True):
            assert theirs.dtype == ours.dtype
            np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)
        theirs, ours = results[0][1], results[1][1]
        assert {n: list(v) for n, v in theirs.items()} == {n: list(v) for n, v in ours.items()}
        for number, names in theirs.items():
            for key, value in names.items():
                error = {"rtol": tolerance, "atol": tolerance}
                np.testing.assert_allclose(ours[number][key], value, **error)

    check()


@pytest.mark.parametrize("name", ["SGD", *OPTIONS_OF])
def test_states_go_from_pytorch_to_convcore_and_back(torch, name, rng):
    """Three steps there and two here are five steps anywhere."""
    options = {"lr": 0.05} | ({"momentum": 0.9} if name in ("SGD", "RMSprop") else {})
    start, *draws = rng.standard_normal((6, 7))

    def steps(library, values, state, gradients):
        parameter = leaf(values, library)
        optimizer = getattr(library.optim, name)([parameter], **options)
        if state is not None:
            optimizer.load_state_dict(state)
        for gradient in gradients:
            grown(parameter, gradient, library)
            optimizer.step()
        return parameter.detach().numpy().copy(), optimizer.state_dict()

    def carried(state, library):
        remembered = {
            key: library.from_numpy(np.array(value.numpy()))
            for key, value in state["state"][0].items()
        }
        return {"state": {0: remembered}, "param_groups": state["param_groups"]}

    whole, _ = steps(torch, start, None, draws)
    for first, second in ((torch, convcore), (convcore, torch)):
        values, state = steps(first, start, None, draws[:3])
        values, _ = steps(second, values, carried(state, second), draws[3:])
        np.testing.assert_allclose(values, whole, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["SGD", *OPTIONS_OF])
def test_bits_do_not_depend_on_threads_or_layout(name, threads, rng):
    """Many parameters, some of them larger than a chunk, and gradients that lie otherwise."""
    shapes = [(3,), (0,), (40, 30, 7, 5), (), (200, 300), (1, 1)] * 2
    options = {"lr": 0.05} | ({"momentum": 0.9} if name in ("SGD", "RMSprop") else {})
    start = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    draws = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    results = []
    for n, lie in ((1, np.array), (2, np.array), (7, np.asfortranarray)):
        threads(n)
        parameters = [convcore.from_numpy(a.copy()).requires_grad_() for a in start]
        optimizer = getattr(optim, name)(parameters, **options)
        for _ in range(2):
            for parameter, gradient in zip(parameters, draws, strict=True):
                parameter.grad = convcore.from_numpy(lie(gradient).reshape(gradient.shape))
            optimizer.step()
        results.append([parameter.detach().numpy() for parameter in parameters])
    for other in results[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(results[0], other, strict=True))


def test_parameters_that_share_memory_are_stepped_one_after_the_other():
    memory = np.ones(100_000, np.float32)
    parameters = [convcore.from_numpy(memory).requires_grad_() for _ in range(3)]
    for parameter in parameters:
        parameter.grad = convcore.from_numpy(np.full(100_000, 0.25, np.float32))
    optim.SGD(parameters, lr=1).step()
    assert (memory == 0.25).all()


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128", "float16"])
def test_parameters_with_gaps_leave_the_gaps_alone(rng, dtype):
    memory = rng.standard_normal((50, 6)).astype(dtype)
    before = memory.copy()
    parameter = convcore.from_numpy(memory)[:, ::2].requires_grad_()
    grown(parameter, np.ones((50, 3)))
    optim.Adam([parameter], lr=0.5).step()
    np.testing.assert_allclose(
        memory[:, ::2], before[:, ::2] - 0.5, atol=2e-3 if dtype == "float16" else 1e-6
    )
    assert np.array_equal(memory[:, 1::2], before[:, 1::2])


def test_readonly_parameter_is_refused_before_anything_changes():
    kept = np.ones(3, np.float32)
    fixed = np.ones(3, np.float32)
    parameters = [convcore.from_numpy(array).requires_grad_() for array in (kept, fixed)]
    fixed.flags.writeable = False
    for parameter in parameters:
        grown(parameter, np.ones(3))
    with pytest.raises(RuntimeError, match="read-only"):
        optim.SGD(parameters, lr=1).step()
    assert (kept == 1).all()


def remembering(name, values):
    """An optimizer that remembers as much as it can, one step on, and its parameter."""
    parameter = grown(leaf(values), np.ones(np.shape(values)))
    options = {"amsgrad": True} if name == "Adam" else {"momentum": 0.9}
    optimizer = getattr(optim, name)([parameter], lr=0.1, **options)
    optimizer.step()
    return optimizer, parameter


@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop"])
def test_state_of_another_shape_is_refused_before_anything_changes(name):
    """Someone puts a new last layer on a net, and loads the old net's state."""
    other = remembering(name, np.ones(3, np.float32))[0].state_dict()
    first, parameter = leaf(np.ones(2)), leaf(np.ones((100, 70), np.float32))
    optimizer = getattr(optim, name)([{"params": [first]}, {"params": [parameter]}], lr=0.1)
    state = optimizer.state_dict() | {"state": {1: other["state"][0]}}
    optimizer.load_state_dict(state)
    for each in (first, parameter):
        grown(each, np.ones(each.shape))
    with pytest.raises(RuntimeError, match=r"must have the shape .*\[100, 70\], got \[3\]"):
        optimizer.step()
    assert (first == 1).all() and (parameter == 1).all()
    assert first not in optimizer.state
    assert optimizer.state_dict()["state"][1].get("step") == other["state"][0].get("step")


@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop"])
@pytest.mark.parametrize("begun", [True, False])
def test_option_that_is_refused_in_a_step_changes_nothing(name, begun):
    options = {"lr": 0.1} | ({} if name == "Adam" else {"momentum": 0.9})
    results = []
    for wrong in (False, True):
        parameter = grown(leaf([1.0, 2.0]), [1.0, 3.0])
        optimizer = getattr(optim, name)([parameter], **options)
        for number in range(3):
            if wrong and number == begun:
                for option in ("lr", "weight_decay"):
                    group = optimizer.param_groups[0]
                    before, group[option] = group[option], "x"
                    with pytest.raises(TypeError):
                        optimizer.step()
                    group[option] = before
            optimizer.step()
        state = {key: value.tolist() for key, value in optimizer.state[parameter].items()}
        results.append((parameter.tolist(), state))
    assert results[0] == results[1]


@pytest.mark.parametrize("name", ["Adam", "RMSprop"])
def test_parameter_that_is_there_twice_is_stepped_twice(torch, name):
    options = {"lr": 0.1} | ({} if name == "Adam" else {"momentum": 0.9})
    results = []
    for library in (convcore, torch):
        parameter = grown(leaf([1.0, 2.0], library), [1.0, 3.0], library)
        with pytest.warns(UserWarning, match="duplicate parameters"):
            optimizer = getattr(library.optim, name)([parameter, parameter], **options)
        for _ in range(2):
            optimizer.step()
        results.append(parameter.detach().numpy())
    np.testing.assert_allclose(*results, rtol=1e-12)


def test_gradient_of_another_shape_is_refused():
    parameter = grown(leaf(np.ones(3, np.float32)), np.ones(3))
    parameter.data = convcore.ones(5000)
    with pytest.raises(RuntimeError, match=r"grad must have .* \[5000\], got \[3\]"):
        optim.SGD([parameter], lr=0.1).step()


@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop"])
@pytest.mark.parametrize("values", [1.5, [1.5, 2.5]])
def test_parameter_that_changes_its_dtype_keeps_what_is_remembered(name, values):
    optimizer, parameter = remembering(name, np.array(values, np.float32))
    whole, same = remembering(name, np.array(values))
    parameter.grad = None
    parameter.data = parameter.data.double()
    for each, stepped in ((parameter, optimizer), (same, whole)):
        grown(each, np.ones(each.shape))
        stepped.step()
    np.testing.assert_allclose(parameter.detach().numpy(), same.detach().numpy(), rtol=1e-6)
    state = optimizer.state[parameter]
    assert {value.dtype for value in state.values()} == {convcore.float32}
    for key, value in state.items():
        np.testing.assert_allclose(value.numpy(), whole.state[same][key].numpy(), rtol=1e-6)


def test_real_gradient_of_a_complex_parameter_is_refused():
    parameter = grown(leaf(np.ones(3, np.float32)), np.ones(3))
    parameter.data = convcore.ones(3, dtype=convcore.complex64)
    with pytest.raises(TypeError, match="complex parameter must be complex, got float32"):
        optim.SGD([parameter], lr=0.1).step()


def test_adamw_decays_whatever_state_it_is_given():
    parameter = grown(leaf([1.0]), [0.0])
    optimizer = optim.AdamW([parameter], lr=0.1)
    optimizer.load_state_dict(optim.Adam([leaf([1.0])], lr=0.1, weight_decay=0.5).state_dict())
    optimizer.step()
    assert parameter.item() == pytest.approx(0.95)


def test_step_size_may_be_a_tensor():
    parameter = grown(leaf([1.0]), [1.0])
    lr = convcore.tensor(0.5)
    optimizer = optim.Adam([parameter], lr=lr)
    optimizer.step()
    lr.fill_(0.25)
    optimizer.step()
    assert parameter.item() == pytest.approx(0.25, abs=1e-6)


def test_step_is_in_place_and_noticed():
    parameter = grown(leaf([1.0, 2.0]), [1.0, 1.0])
    memory, version = parameter.detach().numpy(), parameter._version
    optim.SGD([parameter], lr=1).step()
    assert parameter.detach().numpy() is memory and memory.tolist() == [0.0, 1.0]
    assert parameter._version == version + 1
    assert parameter.is_leaf and parameter.requires_grad


def test_gradient_is_not_changed_by_a_step():
    parameter = grown(leaf([1.0, 2.0]), [1.0, 1.0])
    optimizer = optim.SGD([parameter], lr=1, momentum=0.9, weight_decay=0.1)
    optimizer.step()
    optimizer.step()
    assert parameter.grad.tolist() == [1.0, 1.0]


def test_parameter_without_gradient_is_passed_over():
    parameter = leaf([1.0])
    optimizer = optim.SGD([parameter], lr=1, momentum=0.9, weight_decay=1)
    optimizer.step()
    assert parameter.tolist() == [1.0] and not optimizer.state


def test_lr_may_be_a_tensor_or_a_numpy_number():
    for lr in (convcore.tensor(0.5), np.float64(0.5), np.float32(0.5)):
        parameter = grown(leaf(np.ones(2, np.float32)), [1.0, 1.0])
        optim.SGD([parameter], lr=lr).step()
        assert parameter.dtype == convcore.float32 and parameter.tolist() == [0.5, 0.5]
    with pytest.raises(ValueError, match="Tensor lr must be 1-element"):
        optim.SGD([leaf([1.0])], lr=convcore.ones(2))


def test_read_only_memory_is_refused():
    array = np.ones(2)
    array.flags.writeable = False
    parameter = grown(leaf([0.0, 0.0]), [1.0, 1.0])
    parameter._array = array
    with pytest.raises(RuntimeError, match="read-only"):
        optim.SGD([parameter]).step()


def test_zero_grad_clears_or_zeroes():
    parameter = grown(leaf([1.0]), [2.0])
    optimizer = optim.SGD([parameter])
    gradient = parameter.grad
    optimizer.zero_grad(set_to_none=False)
    assert parameter.grad is gradient and gradient.tolist() == [0.0]
    optimizer.zero_grad()
    assert parameter.grad is None


def test_closure_runs_with_grad_and_its_loss_is_returned():
    parameter = leaf([3.0])
    optimizer = optim.SGD([parameter], lr=0.5)

    def closure():
        optimizer.zero_grad()
        loss = (parameter * parameter).sum()
        loss.backward()
        return loss

    with convcore.no_grad():
        assert optimizer.step(closure).item() == 9.0
    assert parameter.tolist() == [0.0]


def test_training_a_line_fits_it():
    x = convcore.tensor([[0.0], [1.0], [2.0], [3.0]])
    layer = nn.Conv1d(1, 1, 1)
    optimizer = optim.SGD(layer.parameters(), lr=0.1, momentum=0.5)
    for _ in range(200):
        optimizer.zero_grad()
        difference = layer(x.view(1, 1, 4)) - (2 * x + 1).view(1, 1, 4)
        (difference * difference).mean().backward()
        optimizer.step()
    assert layer.weight.item() == pytest.approx(2, abs=1e-3)
    assert layer.bias.item() == pytest.approx(1, abs=1e-3)


# Errors


BAD = [
    lambda lib, p: lib.optim.SGD([], lr=1),
    lambda lib, p: lib.optim.SGD(p, lr=1),
    lambda lib, p: lib.optim.SGD([p], lr=-1),
    lambda lib, p: lib.optim.SGD([p], momentum=-0.5),
    lambda lib, p: lib.optim.SGD([p], weight_decay=-0.5),
    lambda lib, p: lib.optim.SGD([p], nesterov=True),
    lambda lib, p: lib.optim.SGD([p], nesterov=True, momentum=0.9, dampening=0.1),
    lambda lib, p: lib.optim.SGD([p, p * 2]),
    lambda lib, p: lib.optim.SGD([{"params": {p}}]),
    lambda lib, p: lib.optim.SGD([{"params": [p]}, {"params": [p]}]),
    lambda lib, p: lib.optim.SGD([("w", p), leaf([1.0], lib)]),
    lambda lib, p: lib.optim.SGD([{"params": [("w", p)]}, {"params": [leaf([1.0], lib)]}]),
    lambda lib, p: lib.optim.SGD([p], foreach=True, fused=True),
    lambda lib, p: lib.optim.SGD([p]).add_param_group([p]),
    lambda lib, p: lib.optim.SGD([p]).load_state_dict({"state": {}, "param_groups": []}),
    lambda lib, p: lib.optim.SGD([p]).load_state_dict(
        {"state": {}, "param_groups": [{"params": [0, 1]}]}
    ),
    lambda lib, p: lib.optim.Optimizer([p], {}).step(),
    lambda lib, p: lib.optim.Adam([p], lr=-1),
    lambda lib, p: lib.optim.Adam([p], eps=-1),
    lambda lib, p: lib.optim.Adam([p], betas=(1.0, 0.5)),
    lambda lib, p: lib.optim.AdamW([p], betas=(0.5, -0.5)),
    lambda lib, p: lib.optim.Adam([p], betas=(0.5, 0)),
    lambda lib, p: lib.optim.AdamW([p], weight_decay=-1),
    lambda lib, p: lib.optim.Adam([p], foreach=True, fused=True),
    lambda lib, p: lib.optim.Adam([p], lib.tensor(0.1), foreach=True),
    lambda lib, p: lib.optim.AdamW([p], lib.tensor(0.1), foreach=True),
    lambda lib, p: lib.optim.AdamW([p], 0.1, (lib.tensor(0.9), lib.tensor(0.8)), foreach=True),
    lambda lib, p: lib.optim.Adam([p], lr=lib.ones(2)),
    lambda lib, p: lib.optim.RMSprop([p], alpha=-1),
    lambda lib, p: lib.optim.RMSprop([p], momentum=-1),
]


@pytest.mark.parametrize("make", BAD)
def test_errors_are_those_of_pytorch(torch, make):
    same_error(torch, lambda lib: make(lib, leaf([1.0], lib)))


@pytest.mark.parametrize("make", BAD)
def test_bad_arguments_are_refused(make):
    with pytest.raises((TypeError, ValueError, RuntimeError, NotImplementedError)):
        make(convcore, leaf([1.0]))


@pytest.mark.parametrize(
    ("name", "option"),
    [
        *(("SGD", option) for option in ("lr", "momentum", "dampening", "weight_decay")),
        *(("AdamW", option) for option in ("lr", "betas", "eps", "weight_decay")),
        *(("RMSprop", option) for option in ("lr", "alpha", "eps", "momentum")),
    ],
)
@pytest.mark.parametrize("value", ["x", None, ["x", "x"]], ids=str)
def test_options_that_are_no_numbers_are_named(name, option, value):
    with pytest.raises(TypeError, match=rf"{option}\S* must be .*, got \S*({value}|'x')"):
        getattr(optim, name)([leaf([1.0])], **{option: value})


def test_other_things_than_tensors_are_refused():
    with pytest.raises(TypeError, match=r"optimizer can only optimize Tensors.* is int"):
        optim.SGD([1])


def test_the_same_parameter_twice_warns():
    parameter = leaf([1.0])
    with pytest.warns(UserWarning, match="duplicate parameters"):
        optim.SGD([parameter, parameter])


def test_nonleaf_that_retains_its_gradient_is_accepted():
    value = leaf([1.0]) * 2
    value.retain_grad()
    optim.SGD([value])


# Groups, state, printing


def test_repr_equals_pytorch(torch):
    texts = []
    for library in (torch, convcore):
        a, b = leaf([1.0], library), leaf([2.0], library)
        groups = [{"params": [("a", a)]}, {"params": [("b", b)], "lr": 0.25, "extra": "x"}]
        texts.append(repr(library.optim.SGD(groups, lr=0.1, momentum=0.9, foreach=False)))
    assert texts[0] == texts[1]


def trained(library, steps, state=None):
    """An optimizer after some steps, and its parameters."""
    parameters = [leaf([1.0, 2.0], library), leaf([[3.0]], library)]
    optimizer = library.optim.SGD(
        [{"params": parameters[:1]}, {"params": parameters[1:], "lr": 0.5}], lr=0.1, momentum=0.9
    )
    if state is not None:
        optimizer.load_state_dict(state)
    for _ in range(steps):
        for parameter in parameters:
            grown(parameter, np.full(parameter.shape, 0.5), library)
        optimizer.step()
    return optimizer, parameters


def plain(value):
    """A state with lists in the place of tensors."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value.tolist() if hasattr(value, "tolist") else value


def test_state_dict_equals_pytorch(torch):
    for name in OPTIONS_OF:
        theirs, ours = (
            getattr(lib.optim, name)([leaf([1.0], lib)]).state_dict() for lib in (torch, convcore)
        )
        assert list(ours["param_groups"][0].items()) == list(theirs["param_groups"][0].items())
    theirs, ours = (plain(trained(lib, 2)[0].state_dict()) for lib in (torch, convcore))
    assert list(ours["param_groups"][0]) == list(theirs["param_groups"][0])  # as it is printed
    assert theirs["param_groups"] == ours["param_groups"]
    assert theirs["state"].keys() == ours["state"].keys()
    for number, remembered in theirs["state"].items():
        expected = pytest.approx(np.array(remembered["momentum_buffer"]))
        assert np.array(ours["state"][number]["momentum_buffer"]) == expected


def test_loaded_state_goes_on_where_it_was_saved():
    whole, _ = trained(convcore, 3)
    half, _ = trained(convcore, 2)
    continued, _ = trained(convcore, 1, copy.deepcopy(half.state_dict()))
    assert plain(continued.state_dict()) == plain(whole.state_dict())


def test_loaded_tensors_take_the_parameters_dtype():
    state, _ = trained(convcore, 1)
    state = state.state_dict()
    parameters = [leaf(np.ones(2, np.float32)), leaf(np.ones((1, 1), np.float32))]
    optimizer = optim.SGD([{"params": parameters[:1]}, {"params": parameters[1:]}], momentum=0.9)
    optimizer.load_state_dict(state)
    assert optimizer.state[parameters[0]]["momentum_buffer"].dtype == convcore.float32
    assert optimizer.param_groups[1]["lr"] == 0.5
    assert optimizer.param_groups[1]["params"][0] is parameters[1]


def test_loading_leaves_the_given_state_alone():
    state = trained(convcore, 1)[0].state_dict()
    before = plain(copy.deepcopy(state))
    trained(convcore, 2, copy.deepcopy(state))
    optimizer, _ = trained(convcore, 0, state)
    optimizer.param_groups[0]["lr"] = 9
    assert plain(state) == before


def test_names_are_kept_in_the_groups():
    layer = nn.Conv1d(1, 1, 1)
    optimizer = optim.SGD(layer.named_parameters())
    assert optimizer.param_groups[0]["param_names"] == ["weight", "bias"]
    other = optim.SGD(layer.parameters())
    state = other.state_dict()
    optimizer.load_state_dict(state)
    assert optimizer.param_groups[0]["param_names"] == ["weight", "bias"]


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda o: pickle.loads(pickle.dumps(o))])
def test_copies_have_their_own_state_and_no_hooks(copied):
    optimizer, parameters = trained(convcore, 1)
    optimizer.register_step_pre_hook(lambda *args: pytest.fail("the copy has no hooks"))
    other = copied(optimizer)
    for group in other.param_groups:
        for parameter in group["params"]:
            grown(parameter, np.ones(parameter.shape))
    other.step()
    assert parameters[0].tolist() == trained(convcore, 1)[1][0].tolist()
    assert set(other.state) == {p for group in other.param_groups for p in group["params"]}


# Hooks


def test_hooks_run_around_a_step_in_order():
    events = []
    optimizer, _ = trained(convcore, 0)

    def note(name):
        return lambda opt, args, kwargs: events.append((name, opt is optimizer, args[0] is opt))

    handles = [
        register_optimizer_step_pre_hook(note("global pre")),
        register_optimizer_step_post_hook(note("global post")),
        optimizer.register_step_post_hook(note("post")),
        optimizer.register_step_pre_hook(note("pre")),
    ]
    optimizer.step()
    assert events == [(n, True, True) for n in ("global pre", "pre", "post", "global post")]
    for handle in handles:
        handle.remove()
    optimizer.step()
    assert len(events) == 4


def test_pre_hook_replaces_the_arguments():
    optimizer, _ = trained(convcore, 0)
    optimizer.register_step_pre_hook(lambda opt, args, kwargs: ((opt, lambda: 7), {}))
    assert optimizer.step() == 7
    optimizer.register_step_pre_hook(lambda opt, args, kwargs: 3)
    with pytest.raises(RuntimeError, match=r"must return None or a tuple of"):
        optimizer.step()


def test_hooks_run_once_where_a_step_calls_its_bases_step():
    class Careful(optim.SGD):
        def step(self, closure=None):
            return super().step(closure)

    events = []
    optimizer = Careful([leaf([1.0])])
    optimizer.register_step_pre_hook(lambda *args: events.append("pre"))
    optimizer.step()
    optimizer.step()
    assert events == ["pre", "pre"]


def test_hooks_run_for_optimizers_of_the_users_own():
    class Sign(Optimizer):
        def __init__(self, params, lr=required):
            super().__init__(params, {"lr": lr})

        def step(self, closure=None):
            with convcore.no_grad():
                for group in self.param_groups:
                    for parameter in group["params"]:
                        parameter -= group["lr"] * parameter.grad
            return "stepped"

    events = []
    parameter = grown(leaf([1.0]), [2.0])
    optimizer = Sign([parameter], lr=0.25)
    optimizer.register_step_post_hook(lambda *args: events.append("post"))
    assert optimizer.step() == "stepped" and events == ["post"]
    assert parameter.tolist() == [0.5]
    with pytest.raises(ValueError, match="required optimization parameter lr"):
        Sign([parameter])


def test_state_dict_hooks_change_what_is_saved():
    events = []
    optimizer, _ = trained(convcore, 0)
    optimizer.register_state_dict_pre_hook(lambda opt: events.append("second"))
    optimizer.register_state_dict_pre_hook(lambda opt: events.append("first"), prepend=True)
    optimizer.register_state_dict_post_hook(lambda opt, state: {**state, "more": 1})
    handle = optimizer.register_state_dict_post_hook(lambda opt, state: state.update(even=2))
    state = optimizer.state_dict()
    assert events == ["first", "second"] and (state["more"], state["even"]) == (1, 2)
    handle.remove()
    assert "even" not in optimizer.state_dict()


def test_load_state_dict_hooks_change_what_is_loaded():
    events = []
    optimizer, _ = trained(convcore, 0)
    state = optimizer.state_dict()

    def halve(opt, state):
        groups = [{**group, "lr": group["lr"] / 2} for group in state["param_groups"]]
        return {**state, "param_groups": groups}

    optimizer.register_load_state_dict_pre_hook(halve)
    optimizer.register_load_state_dict_post_hook(lambda opt: events.append("loaded"))
    optimizer.load_state_dict(state)
    assert [group["lr"] for group in optimizer.param_groups] == [0.05, 0.25]
    assert events == ["loaded"]


@pytest.mark.parametrize("name", ["Adadelta", "Adagrad", "Adam", "NAdam", "RAdam"])
def test_the_state_of_a_parameter_is_shown_in_pytorchs_order(torch, name):
    found = []
    for lib in (convcore, torch):
        weight = lib.nn.Parameter(lib.ones(2))
        optimizer = getattr(lib.optim, name)([weight])
        weight.sum().backward()
        optimizer.step()
        found.append(list(optimizer.state_dict()["state"][0]))
    assert found[0] == found[1]
