"""Settings that scripts make at their start, and NumPy's functions on tensors, as in PyTorch."""

import warnings

import numpy as np
import pytest
from against_torch import same

import convcore


@pytest.fixture
def settings(torch):
    """Put both libraries' settings back after a test."""
    before = torch.get_default_dtype()
    yield
    torch.use_deterministic_algorithms(False)
    convcore.use_deterministic_algorithms(False)
    torch.set_default_dtype(before)
    convcore.set_default_dtype(convcore.float32)


def test_determinism_is_remembered_as_in_pytorch(torch, settings):
    for arguments in [(True,), (False,)]:
        for warn_only in (False, True):
            found = []
            for lib in (convcore, torch):
                lib.use_deterministic_algorithms(*arguments, warn_only=warn_only)
                found.append(
                    (
                        lib.are_deterministic_algorithms_enabled(),
                        lib.is_deterministic_algorithms_warn_only_enabled(),
                    )
                )
            assert found[0] == found[1]
    with pytest.raises(TypeError, match="must be bool, not int"):
        convcore.use_deterministic_algorithms(1)


@pytest.mark.parametrize("name", ["Half", "Float", "Double"])
@pytest.mark.parametrize("by_name", [False, True])
def test_default_type_is_set_as_in_pytorch(torch, settings, name, by_name):
    found = []
    for lib in (convcore, torch):
        kind = f"torch.{name}Tensor" if by_name else getattr(lib, f"{name}Tensor")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch calls it deprecated, once
            lib.set_default_tensor_type(kind)
        found.append((str(lib.get_default_dtype()), str(lib.ones(1).dtype)))
    assert found[0] == found[1]


def test_default_type_is_one_of_floating_point(settings):
    with pytest.raises(TypeError, match="only floating-point types"):
        convcore.set_default_tensor_type(convcore.LongTensor)
    with pytest.raises(TypeError, match="only floating-point types"):
        convcore.set_default_tensor_type("torch.LongTensor")
    for wrong in (convcore.float64, np.float64, convcore.ones(1), None):
        with pytest.raises(TypeError, match="invalid type object"):
            convcore.set_default_tensor_type(wrong)
    with pytest.raises(ValueError, match="invalid type"):
        convcore.set_default_tensor_type("DoubleTensor")
    assert convcore.get_default_dtype() is convcore.float32


def test_tensors_are_on_the_cpu():
    assert convcore.ones(1).is_cpu


# NumPy's functions

FUNCTIONS = {
    "exp": lambda x, a: np.exp(x),
    "sqrt of a number": lambda x, a: np.sqrt(x[0, 0]),
    "comparison": lambda x, a: np.greater(x, 0),
    "isnan": lambda x, a: np.isnan(x),
    "sum with an array": lambda x, a: np.add(x, a),
    "sum with a tensor": lambda x, a: np.add(a, x),
    "reduction": lambda x, a: np.add.reduce(x),
    "clip": lambda x, a: np.clip(x, 0, 0.5),
    "two results": lambda x, a: np.divmod(x, 2)[1],
    "round": lambda x, a: np.round(x),
    "argmax": lambda x, a: np.argmax(x, axis=1),
    "cumsum": lambda x, a: np.cumsum(x, axis=0),
    "reshape": lambda x, a: np.reshape(x, (6,)),
    "concatenate": lambda x, a: np.concatenate([x, a]),
    "asarray": lambda x, a: np.asarray(x),
    "asarray of another dtype": lambda x, a: np.asarray(x, dtype=np.float64),
    "tensor * array": lambda x, a: x * a,
    "tensor ** array": lambda x, a: abs(x) ** a,
    "NumPy number * tensor": lambda x, a: np.float64(2) * x,
    "NumPy number - tensor": lambda x, a: np.float32(2) - x,
    "index of an array": lambda x, a: a[x[0].int()],
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_numpy_give_what_they_give_for_pytorch(torch, rng, name):
    array = rng.uniform(0.1, 1, (2, 3)).astype("float32")
    other = rng.uniform(0.1, 1, (2, 3))
    results = []
    for lib in (convcore, torch):
        with warnings.catch_warnings():
            if lib is torch:  # which does not know NumPy 2's arguments everywhere
                warnings.simplefilter("ignore")
            results.append(FUNCTIONS[name](lib.from_numpy(array.copy()), other))
    assert [isinstance(r, np.ndarray) for r in results] in ([True] * 2, [False] * 2)
    same(*results, name)


def test_reductions_of_numpy_take_tensors(rng):
    array = rng.normal(size=(2, 3))
    x = convcore.from_numpy(array)
    for function in (np.sum, np.mean, np.prod, np.max, np.min, np.any, np.all):
        result = function(x)
        assert isinstance(result, convcore.Tensor)
        np.testing.assert_allclose(result.numpy(), function(array))
    for function in (np.sum, np.mean):
        np.testing.assert_allclose(function(x, axis=0), function(array, axis=0))
        found = function(x, axis=(0, 1), keepdims=True)
        np.testing.assert_allclose(found, function(array, axis=(0, 1), keepdims=True))


def test_array_times_tensor_is_differentiable(rng):
    array = rng.normal(size=3)
    x = convcore.ones(3, dtype=convcore.float64, requires_grad=True)
    (array * x).sum().backward()
    np.testing.assert_allclose(x.grad, array)


def test_functions_of_numpy_refuse_tensors_that_require_grad(torch):
    for lib in (convcore, torch):
        with pytest.raises(
            RuntimeError, match=r"Can't call numpy\(\) on Tensor that requires grad"
        ):
            np.exp(lib.ones(2, requires_grad=True))


def test_what_is_not_set_is_filled_where_algorithms_are_deterministic(torch):
    makers = (
        lambda lib: lib.empty(2),
        lambda lib: lib.empty(2, out=lib.zeros(2)),
        lambda lib: lib.empty(2, dtype=lib.int8),
        lambda lib: lib.empty(2, dtype=lib.bool),
        lambda lib: lib.Tensor(2),
        lambda lib: lib.empty_like(lib.ones(2, dtype=lib.complex64)).real,
        lambda lib: lib.ones(1).resize_(2),
    )
    found = []
    for lib in (convcore, torch):
        lib.use_deterministic_algorithms(True)
        try:
            found.append([make(lib).numpy() for make in makers])
        finally:
            lib.use_deterministic_algorithms(False)
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert np.isnan(found[0][0]).all() and found[0][2].tolist() == [127, 127]


def test_nothing_is_compiled():
    net = convcore.nn.ReLU()
    assert convcore.compile(net, mode="max-autotune") is net

    @convcore.compile
    def plain():
        return 1

    @convcore.compile(dynamic=True)
    def with_options():
        return 2

    assert (plain(), with_options()) == (1, 2)
