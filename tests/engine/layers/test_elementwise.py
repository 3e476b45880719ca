"""The compiled elementwise ops: arrays of any layout and dtype, beside their formulas."""

from functools import partial

import numpy as np
import pytest
from elements import ACTIVATIONS, EXACT, IDS
from scipy import special

import convcore
from convcore.engine.layers.elementwise import elementwise
from convcore.functions.table import ROWS
from convcore.nn import functional as F

# A rest behind any vector and any chunk; the second array's axes lie in another order.
SHAPE = (3, 7, 61, 53)
LAYOUTS = {
    "contiguous": lambda array: array,
    "channels_last": lambda array: np.ascontiguousarray(array.transpose(0, 2, 3, 1)).transpose(
        0, 3, 1, 2
    ),
    "batch last": lambda array: np.ascontiguousarray(array.transpose(1, 2, 3, 0)).transpose(
        3, 0, 1, 2
    ),
}


def numbers_of_channels(x, images):
    """Return other numbers for each channel, of all images or of each."""
    numbers = np.linspace(-2, 2, images * SHAPE[1]).reshape(images, SHAPE[1], 1, 1)
    return convcore.from_numpy(numbers.astype(x.numpy(force=True).dtype))


def kernel_of(function):
    """Return the compiled op that a function of a Tensor is, with its parameters, or None."""
    node = function(convcore.ones(3, requires_grad=True)).grad_fn
    return ("relu",) if node.name() == "ReluBackward0" else node.attributes.get("kernel")


UNARY, FORMULAS = {}, {}
for id, (name, arguments, _) in zip(IDS, ACTIVATIONS, strict=True):
    function = partial(getattr(F, name), **arguments)
    if kernel_of(function):
        UNARY[id] = function
        FORMULAS[id] = partial(ROWS[name].formula, EXACT, **arguments)
PAIRS = {
    "prelu": lambda x: F.prelu(x, numbers_of_channels(x, 1).flatten()),
    "prelu of one slope": lambda x: F.prelu(x, numbers_of_channels(x, 1).flatten()[1:2]),
    "shift of channels": lambda x: x + numbers_of_channels(x, 1),
    "scale of channels": lambda x: numbers_of_channels(x, 1) * x,
    "scale of each image's channels": lambda x: x * numbers_of_channels(x, x.shape[0]),
    "sum": lambda x: x + F.relu(x),
    "product": lambda x: x * F.relu(x),
}
FUNCTIONS = UNARY | PAIRS


@pytest.fixture
def numbers(rng):
    """Return numbers on both sides of every corner, with all that is not a common number."""
    array = rng.uniform(-8, 8, SHAPE)
    array.flat[::1001] = 0.0
    array.flat[5::2003] = -0.0
    array.flat[7::3001] = np.inf
    array.flat[9::3001] = -np.inf
    array.flat[11::3001] = np.nan
    return array


def results(function, array, grad, create_graph=False):
    """Return a function of an array, and the gradient of that array."""
    x = convcore.from_numpy(array).requires_grad_()
    y = function(x)
    (grad_x,) = convcore.autograd.grad(y, x, convcore.from_numpy(grad), create_graph=create_graph)
    return y.detach().numpy(), grad_x.detach().numpy()


def agree(found, expected, tolerance):
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.strides == theirs.strides
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


def test_every_op_is_tested():
    unary = {name for name, op in elementwise.OPS.items() if op.saved}
    assert {kernel_of(function)[0] for function in UNARY.values()} == unary


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", UNARY)
def test_op_gives_what_its_formula_gives(numbers, rng, name, dtype, layout):
    array = LAYOUTS[layout](numbers.astype(dtype))
    grad = LAYOUTS[layout](rng.standard_normal(SHAPE).astype(dtype))
    op, *_ = kernel_of(UNARY[name])
    value, found = results(UNARY[name], array, grad)
    with np.errstate(all="ignore"):
        exact = FORMULAS[name](array.astype("f8" if dtype == "float32" else "g"))
    # Both round, and slopes such as 1 - tanh(x)^2 and 1 + erf(x) cancel; gelu's with tanh is
    # the first of these times x + 0.13 x^3, which is 70 for the largest x.
    tolerance = (200 if op == "gelu_tanh" else 8) * np.finfo(dtype).eps
    # What is to be differentiated again is computed by differentiable functions.
    _, expected = results(UNARY[name], array, grad, create_graph=True)
    agree((value, found), (exact.astype(dtype), expected), tolerance)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", PAIRS)
def test_op_of_two_arrays_gives_what_numpy_gives(numbers, rng, name, dtype, layout, monkeypatch):
    array = LAYOUTS[layout](numbers.astype(dtype))
    grad = LAYOUTS[layout](rng.standard_normal(SHAPE).astype(dtype))
    monkeypatch.setattr(elementwise, "_LEAST_OF_ONE", {})
    assert elementwise.has_kernel("sum", array, grad)
    found = results(PAIRS[name], array, grad)
    monkeypatch.setattr(elementwise, "has_kernel", lambda *args: False)
    monkeypatch.setattr(elementwise, "by_channel", lambda *args: None)
    agree(found, results(PAIRS[name], array, grad), 8 * np.finfo(dtype).eps)


GAPS = {
    "every other channel": lambda array: array[:, ::2],
    "every other channel, channels_last": lambda array: LAYOUTS["channels_last"](array)[:, ::2],
    "turned round": lambda array: array[:, :, ::-1],
    "one image again and again": lambda array: np.broadcast_to(array[:1], array.shape),
    "one number": lambda array: np.broadcast_to(array[0, 0, 0, 0], array.shape),
    "none": lambda array: array[:0],
}


def converted(op, params, array, grad):
    """Return an op and its gradient, computed by the kernel in float32 but of float64."""
    dtype = array.dtype
    wide = "f8" if dtype == "f8" else "f4"
    rounded = [float(dtype.type(number)) for number in params]  # by ops that shrink alone
    first = rounded if op == "hardshrink" else params
    value = elementwise.forward(op, array.astype(wide, "C"), first).astype(dtype)
    saved = array if elementwise.OPS[op].saved == "input" else value
    params = rounded if op.endswith("shrink") else params
    gradient = elementwise.gradient(op, grad.astype(wide, "C"), saved.astype(wide, "C"), params)
    return value, gradient.astype(dtype)


@pytest.mark.filterwarnings("ignore:The given NumPy array is not writable")
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("gaps", GAPS)
@pytest.mark.parametrize("name", UNARY)
def test_arrays_that_no_kernel_takes_are_converted(numbers, rng, name, gaps, dtype):
    op, *params = kernel_of(UNARY[name])
    if not elementwise.computes(op, np.dtype(dtype)):
        pytest.skip("no kernel")
    array = GAPS[gaps](numbers.astype(dtype))
    grad = rng.standard_normal(array.shape).astype(dtype)
    found = results(UNARY[name], array, grad)
    with np.errstate(over="ignore"):
        expected = converted(op, params, array, grad)
    assert found[0].strides == np.negative(array).strides
    if dtype != "float16":
        assert found[1].strides == np.multiply(grad, array).strides
    # NumPy has these two itself.
    tolerance = 8 * np.finfo(dtype).eps if op in ("sigmoid", "tanh") else 0
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("layout", ["contiguous", "channels_last"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_bits_do_not_depend_on_threads(numbers, rng, name, layout):
    array = np.tile(numbers.astype("float32"), (8, 1, 1, 1))
    array = LAYOUTS[layout](array)
    grad = rng.standard_normal(array.shape).astype("float32")
    before = convcore.get_num_threads()
    bits = set()
    try:
        for threads in (1, 2, 3, 7):
            convcore.set_num_threads(threads)
            found = results(FUNCTIONS[name], array, grad)
            bits.add(b"".join(a.tobytes() for a in found))
    finally:
        convcore.set_num_threads(before)
    assert len(bits) == 1


def test_arrays_with_gaps_or_of_other_layouts_do_not_suit():
    array = np.zeros((4, 64, 64, 8), "f4")

    def has_kernel(*arrays):
        return elementwise.has_kernel("relu", *arrays)

    assert has_kernel(array, array.copy())
    assert elementwise.has_kernel("gelu", array)
    assert not elementwise.has_kernel("gelu", array.astype("f8"))
    assert not has_kernel(array[:, ::2])
    assert not has_kernel(array[::-1])
    assert not has_kernel(np.broadcast_to(array[:1], array.shape))
    assert not has_kernel(array, array.astype("f8"))
    assert not has_kernel(array, np.asfortranarray(array))
    assert not has_kernel(array.astype("f2"))
    assert not has_kernel(array[0, :2])


@pytest.mark.parametrize("layout", ["contiguous", "channels_last"])
@pytest.mark.parametrize("shape", [(2, 3, 49), (1, 2, 90, 100), (2, 600, 3, 3), (1, 9000, 2)])
@pytest.mark.parametrize("images", ["one", "all"])
def test_channels_meet_their_numbers_in_every_shape(shape, images, layout, rng):
    order = (0, *range(2, len(shape)), 1)
    x = rng.standard_normal(shape).astype("f4")
    if layout == "channels_last" and len(shape) == 4:
        x = np.ascontiguousarray(x.transpose(order)).transpose(0, 3, 1, 2)
    numbers = rng.standard_normal((shape[0] if images == "all" else 1, shape[1])).astype("f4")
    numbers = numbers.reshape(*numbers.shape, *(1,) * (len(shape) - 2))
    found = elementwise.by_channel("product", x, numbers)
    if x.size < 2048:
        assert found is None
    else:
        assert found.strides == x.strides
        np.testing.assert_array_equal(found, x * numbers)


def test_numbers_that_are_not_of_channels_are_left_to_numpy(rng):
    x = rng.standard_normal((4, 8, 16, 16)).astype("f4")
    for shape in [(4, 1, 1, 1), (8, 1, 1), (1, 8, 16, 1), (2, 8, 1, 1), (1, 8, 1)]:
        assert elementwise.by_channel("sum", x, np.zeros(shape, "f4")) is None
    numbers = np.zeros((1, 8, 1, 1), "f4")
    assert elementwise.by_channel("sum", x, numbers) is not None
    assert elementwise.by_channel("sum", x, numbers.astype("f8")) is None
    assert elementwise.by_channel("sum", x[:, :, ::2], numbers) is None
    assert elementwise.by_channel("sum", np.asfortranarray(x), numbers) is None


def test_in_place_relu_writes_the_array(numbers):
    array = numbers.astype("float32")
    expected = np.where(array < 0, np.float32(0), array)
    convcore.relu_(convcore.from_numpy(array))
    np.testing.assert_array_equal(array, expected)


# Accuracy: errors in units of the last place, over all exponents


# The op's parameters, and its formula.
WIDE = {
    "sigmoid": ((), EXACT.sigmoid),
    "tanh": ((), EXACT.tanh),
    "elu": ((1.0, 1.0, 1.0), partial(ROWS["elu"].formula, EXACT)),
    "softplus": ((1.0, 1e9), EXACT.softplus),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", WIDE)
def test_exponentials_are_exact_to_three_units_of_the_last_place(name, dtype, rng):
    if dtype == "float32":
        x = np.arange(0, 2**32, 9973, dtype=np.uint64).astype(np.uint32).view("f4")
        wide = np.float64
    else:
        wide = np.longdouble
        if np.finfo(wide).eps == np.finfo(np.float64).eps:
            pytest.skip("this system has no wider type")
        x = rng.standard_normal(300_000) * np.exp2(rng.uniform(-60, 10, 300_000))
    x = np.concatenate([x, np.array([0, np.inf, -np.inf, np.nan], x.dtype)])
    params, formula = WIDE[name]
    y = elementwise.forward(name, x, params)
    with np.errstate(all="ignore"):
        exact = formula(x.astype(wide))
    nearest = exact.astype(x.dtype)
    np.testing.assert_array_equal(np.isfinite(y), np.isfinite(nearest))
    np.testing.assert_array_equal(np.isnan(y), np.isnan(nearest))
    finite = np.isfinite(y)
    errors = np.abs(y[finite] - exact[finite]) / np.spacing(np.abs(nearest[finite]))
    assert errors.max() <= 3


def test_gelu_is_exact_to_the_precision_of_its_argument():
    x = np.linspace(-12, 12, 300_001, dtype="f4")
    exact = x * special.ndtr(x.astype("f8"))
    errors = np.abs(elementwise.forward("gelu", x) - exact)
    assert np.all(errors <= 2 * np.finfo("f4").eps * np.abs(x))


def test_gradients_are_accumulated_by_the_kernel(rng):
    x = convcore.from_numpy(rng.standard_normal((8, 16, 32, 32)).astype("f4")).requires_grad_()
    for times in (1, 2, 3):
        (x * 2.0).backward(convcore.ones_like(x))
        np.testing.assert_array_equal(x.grad.numpy(), np.full(x.shape, 2.0 * times, "f4"))


BFLOAT16_SIZES = [1, 255, 256, 1023, 1025, (1 << 13) + 17, 300_001]


@pytest.mark.parametrize("size", BFLOAT16_SIZES)
@pytest.mark.parametrize("op", sorted(elementwise.OPS))
def test_bfloat16_is_computed_in_float32_and_rounded_once(op, size, rng):
    dtype = pytest.importorskip("ml_dtypes").bfloat16
    about = elementwise.OPS[op]
    params = [0.5, 1.25, 0.75][: about.parameters]
    x, other = (rng.standard_normal(size).astype(dtype) for _ in range(2))
    x[:: max(1, size // 7)] = np.nan
    wide = x.astype("f4"), other.astype("f4")
    with np.errstate(all="ignore"):
        if about.saved:
            found = elementwise.forward(op, x, params), elementwise.gradient(op, other, x, params)
            wanted = (
                elementwise.forward(op, wide[0], params),
                elementwise.gradient(op, wide[1], wide[0], params),
            )
        else:
            found = (elementwise.binary(op, x, other, params),)
            wanted = (elementwise.binary(op, *wide, params),)
        for one, right in zip(found, wanted, strict=True):
            assert one.dtype == dtype
            np.testing.assert_array_equal(one.astype("f4"), right.astype(dtype).astype("f4"))


def test_bfloat16_goes_to_the_kernel_where_it_is_dense():
    dtype = pytest.importorskip("ml_dtypes").bfloat16
    x = np.ones((4, 256), dtype)
    assert elementwise.has_kernel("relu", x) and elementwise.has_kernel("sum", x, x)
    assert not elementwise.has_kernel("relu", x[:, ::2])
    assert not elementwise.has_kernel("relu", x[0, :100])
