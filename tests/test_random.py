"""Random numbers: equal to PyTorch's after the same seed, and from sources of their own."""

import copy
import pickle
import threading

import numpy as np
import pytest

import convcore
from convcore import random
from convcore._tensor import channels_last, creation, dtypes, wrap
from convcore.random import Generator

SEEDS = (0, 1, -3, 2**40 + 5, 2**63 + 1)
SIZES = ((), (3,), (15,), (16,), (5, 7), (2, 16), (2**16 + 5,), (70001,))
FLOATS = ("float16", "float32", "float64", "complex64", "complex128")


@pytest.fixture(autouse=True)
def default_state():
    """Leave the default generator as it was."""
    with random.fork_rng():
        yield


@pytest.fixture
def both(torch):
    """Seed this library and PyTorch."""

    def seed_both(seed):
        random.manual_seed(seed)
        torch.manual_seed(seed)

    with torch.random.fork_rng():
        yield seed_both


def assert_close(array, theirs):
    """Compare numbers that differ where log, cos, sin and fused sums round differently.

    PyTorch itself rounds differently on a processor without AVX2, an angle of up to 2 pi for one.
    """
    expected = theirs.numpy()
    assert array.dtype == expected.dtype and array.shape == expected.shape
    eps = np.finfo(array.dtype).eps
    np.testing.assert_allclose(array, expected, rtol=4 * eps, atol=40 * eps)


@pytest.mark.parametrize("name", FLOATS)
def test_rand_equals_pytorch(torch, both, name):
    for seed in SEEDS:
        both(seed)
        for size in SIZES:
            ours = random.rand(size, dtype=getattr(dtypes, name))._array
            expected = torch.rand(size, dtype=getattr(torch, name)).numpy()
            assert ours.dtype == expected.dtype
            np.testing.assert_array_equal(ours, expected)


@pytest.mark.parametrize("name", FLOATS)
def test_randn_equals_pytorch(torch, both, name):
    for seed in SEEDS:
        both(seed)
        for size in SIZES:
            ours = random.randn(size, dtype=getattr(dtypes, name))._array
            assert_close(ours, torch.randn(size, dtype=getattr(torch, name)))


def test_normal_numbers_come_in_pairs(torch, both, seed):
    both(seed)
    for _ in range(3):
        assert_close(random.randn(1)._array, torch.randn(1))
        assert_close(random.randn(16)._array, torch.randn(16))
        assert_close(random.randn(4)._array, torch.randn(4))
        assert_close(random.rand(2)._array, torch.rand(2))


@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
@pytest.mark.parametrize(("low", "high"), [(-1, 1), (-0.3, 0.7), (2, 3.3)])
def test_filling_equals_pytorch(torch, both, seed, name, low, high):
    both(seed)
    for size in ((5,), (100,), (2**16 + 5,)):
        array, theirs = np.empty(size, name), torch.empty(size, dtype=getattr(torch, name))
        random.fill_uniform(array, low, high)
        assert_close(array, theirs.uniform_(low, high))
        random.fill_normal(array, low, high * high)
        np.testing.assert_allclose(
            array, theirs.normal_(low, high * high).numpy(), atol=400 * np.finfo(name).eps
        )


LAYOUTS = (
    ((2, 4, 5, 3), lambda memory: memory.transpose(0, 3, 1, 2)),
    ((6, 4), lambda memory: memory.T),
    ((6, 8), lambda memory: memory[:, ::2]),
    ((6, 8), lambda memory: memory.T[::2]),
    ((6, 1, 8), lambda memory: memory[:, :, 1]),
)


def test_filling_a_small_dtype_overflows_quietly(seed):
    array = np.empty(100, np.float16)
    random.fill_normal(array, 0.0, 1e6, Generator().manual_seed(seed))
    assert np.isinf(array).any()


def test_filling_follows_memory(torch, both, seed):
    both(seed)
    for size, arrange in LAYOUTS:
        array = arrange(np.empty(size))
        theirs = torch.from_numpy(arrange(np.empty(size)))
        random.fill_uniform(array, 2.0, 3.0)
        np.testing.assert_allclose(array, theirs.uniform_(2.0, 3.0).numpy(), rtol=1e-15)
        random.fill_normal(array)
        assert_close(array, theirs.normal_())
        random.fill_random(array, 0, 9)
        np.testing.assert_array_equal(array, theirs.random_(0, 9).numpy())


def test_draws_like_another_tensor_equal_pytorch(torch, both, seed):
    both(seed)
    ours = creation.empty(2, 3, 4, 5, memory_format=channels_last)
    theirs = torch.empty(2, 3, 4, 5, memory_format=torch.channels_last)
    assert_close(random.rand_like(ours)._array, torch.rand_like(theirs))
    assert_close(random.randn_like(ours)._array, torch.randn_like(theirs))
    assert_close(random.randint_like(ours, 5)._array, torch.randint_like(theirs, 5))
    assert_close(random.randint_like(ours, -2, 5)._array, torch.randint_like(theirs, -2, 5))
    assert random.rand_like(ours).stride() == theirs.stride()


def test_draws_by_tensors_are_contiguous_as_pytorchs(torch, both, seed, rng):
    array = rng.random((2, 4, 5, 3)).astype("f4").transpose(0, 3, 1, 2)
    ours, theirs = wrap(array), torch.from_numpy(array)
    for draw in (
        lambda m, x: m.bernoulli(x),
        lambda m, x: m.normal(x, 1.0),
        lambda m, x: m.normal(0.0, x),
    ):
        both(seed)
        drawn, expected = draw(convcore, ours), draw(torch, theirs)
        assert drawn.stride() == expected.stride() == (60, 20, 5, 1)
        assert_close(drawn._array, expected)


RANGES = [(0, 2), (-5, 100), (0, 2**28 - 1), (0, 2**28), (-(2**40), 2**50), (-(2**63), 2**63 - 1)]


@pytest.mark.parametrize(("low", "high"), RANGES)
def test_randint_equals_pytorch(torch, both, seed, low, high):
    both(seed)
    for size in ((7, 3), (70001,)):
        expected = torch.randint(low, high, size).numpy()
        np.testing.assert_array_equal(random.randint(low, high, size)._array, expected)


@pytest.mark.parametrize(
    "name", ["uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "bool"]
)
def test_random_integers_of_a_dtype_equal_pytorch(torch, both, seed, name):
    both(seed)
    array = np.empty((5, 3), name)
    random.fill_random(array)
    expected = torch.empty((5, 3), dtype=getattr(torch, name)).random_().numpy()
    np.testing.assert_array_equal(array, expected)


@pytest.mark.parametrize("n", [0, 1, 2, 5, 1000])
def test_randperm_equals_pytorch(torch, both, seed, n):
    both(seed)
    assert random.randperm(n)._array.tolist() == torch.randperm(n).tolist()
    assert random.randperm(n, dtype=dtypes.int32)._array.dtype == np.int32


def test_normal_with_tensors_equals_pytorch(torch, both, seed, rng):
    both(seed)
    mean, std = rng.random((4, 5)).astype(np.float32), rng.random(5).astype(np.float32)
    ours, theirs = (wrap(mean), wrap(std)), (torch.from_numpy(mean), torch.from_numpy(std))
    for given, expected in (
        ((2.0, 3.0, (4, 5)), (2.0, 3.0, (4, 5))),
        (ours, theirs),
        ((ours[0], 2.0), (theirs[0], 2.0)),
        ((1.0, ours[1]), (1.0, theirs[1])),
    ):
        np.testing.assert_allclose(
            random.normal(*given)._array, torch.normal(*expected).numpy(), rtol=1e-6, atol=1e-5
        )


def test_coins_are_uniform_numbers_below_p(seed):
    """PyTorch's own coins may come from MKL; these are what it draws elsewhere."""
    for p in (0, 0.3, 1):
        random.manual_seed(seed)
        uniform = random.rand(70001, dtype=dtypes.float64)._array
        random.manual_seed(seed)
        array = np.empty(70001, np.float32)
        random.fill_bernoulli(array, p)
        np.testing.assert_array_equal(array, uniform < p)


def test_bernoulli_of_a_tensor_equals_pytorch(torch, both, seed, rng):
    both(seed)
    for name in ("float32", "float64"):
        p = rng.random((4, 5)).astype(name)
        expected = torch.bernoulli(torch.from_numpy(p)).numpy()
        np.testing.assert_array_equal(random.bernoulli(wrap(p))._array, expected)
    assert set(random.bernoulli(wrap(p), 1.0)._array.ravel()) == {1.0}
    with pytest.raises(RuntimeError, match="Expected p_in >= 0 && p_in <= 1"):
        random.bernoulli(wrap(p + 1))


def test_multinomial_equals_pytorch(torch, both, seed, rng):
    both(seed)
    for shape in ((5,), (4, 5)):
        weights = rng.random(shape).astype(np.float32)
        expected = torch.multinomial(torch.from_numpy(weights), 6, True)
        assert random.multinomial(wrap(weights), 6, True)._array.tolist() == expected.tolist()


def test_multinomial_without_replacement(rng):
    weights = np.array([[0.0, 1.0, 2.0, 3.0], [4.0, 0.0, 1.0, 1.0]])
    drawn = random.multinomial(wrap(weights), 3)._array
    assert sorted(drawn[0]) == [1, 2, 3] and sorted(drawn[1]) == [0, 2, 3]
    many = np.broadcast_to(weights[0], (20000, 4))
    first = random.multinomial(wrap(many), 1)._array
    shares = np.bincount(first[:, 0], minlength=4) / 20000
    np.testing.assert_allclose(shares, weights[0] / 6, atol=0.02)


@pytest.mark.parametrize(
    ("weights", "count", "text"),
    [
        ([1.0, -1.0], 1, "element < 0"),
        ([1.0, np.inf], 1, "`inf`"),
        ([0.0, 0.0], 1, "sum of probabilities <= 0"),
        ([1.0, 1.0], 3, "without replacement"),
        ([1.0, 1.0], 0, "n_sample <= 0"),
        ([[[1.0]]], 1, "must be 1 or 2 dim"),
    ],
)
def test_multinomial_refuses(weights, count, text):
    with pytest.raises(RuntimeError, match=text):
        random.multinomial(wrap(np.array(weights)), count)


def test_draws_without_pytorch():
    random.manual_seed(0)
    np.testing.assert_array_equal(
        random.rand(3)._array,
        np.float32([0.4962565898895264, 0.7682217955589294, 0.08847743272781372]),
    )
    random.manual_seed(0)
    np.testing.assert_allclose(
        random.randn(3)._array,
        [1.5409960746765137, -0.293428897857666, -2.1787893772125244],
        rtol=1e-6,
    )
    random.manual_seed(0)
    blocks = random.randn(20)._array[[0, 8, 19]]
    np.testing.assert_allclose(
        blocks, [-1.1258398294448853, 0.46809640526771545, 0.05373690277338028], rtol=1e-6
    )
    random.manual_seed(0)
    assert random.randint(10, (6,))._array.tolist() == [4, 9, 3, 0, 3, 9]
    random.manual_seed(0)
    assert random.randperm(6)._array.tolist() == [2, 5, 3, 0, 1, 4]


def test_state_is_exchanged_with_pytorch(torch, both, seed):
    both(seed)
    random.randn(3), torch.randn(3)
    ours, theirs = random.get_rng_state(), torch.get_rng_state()
    # The spare normal number may differ in its last bit.
    assert (ours._array != theirs.numpy()).sum() <= 2
    torch.rand(700)
    random.set_rng_state(wrap(torch.get_rng_state().numpy()))
    np.testing.assert_array_equal(random.rand(9)._array, torch.rand(9).numpy())
    torch.set_rng_state(torch.from_numpy(random.get_rng_state()._array))
    np.testing.assert_array_equal(random.rand(9)._array, torch.rand(9).numpy())


def test_state_restores_every_draw(seed):
    random.manual_seed(seed)
    random.randn(3)
    state = random.get_rng_state()
    first = [random.randn(3)._array.tolist(), random.rand(3)._array.tolist()]
    random.set_rng_state(state)
    assert [random.randn(3)._array.tolist(), random.rand(3)._array.tolist()] == first
    random.set_rng_state(state)
    with random.fork_rng():
        random.rand(100)
    assert random.randn(3)._array.tolist() == first[0]


def test_state_must_be_one():
    with pytest.raises(TypeError, match=r"must be a torch\.ByteTensor"):
        random.set_rng_state([1, 2])
    with pytest.raises(TypeError, match=r"must be a torch\.ByteTensor"):
        random.set_rng_state(wrap(np.zeros(5056)))
    with pytest.raises(RuntimeError, match=r"of size 5056 but found .* to be 3"):
        random.set_rng_state(wrap(np.zeros(3, np.uint8)))
    with pytest.raises(RuntimeError, match="invalid"):
        random.set_rng_state(wrap(np.zeros(5056, np.uint8)))


def test_generators_are_independent(seed):
    first, second = Generator(), Generator().manual_seed(random.DEFAULT_SEED)
    assert first.initial_seed() == random.DEFAULT_SEED and first.device.type == "cpu"
    random.manual_seed(seed)
    expected = random.rand(4)._array.tolist()
    random.manual_seed(seed)
    drawn = random.rand(4, generator=first)._array.tolist()
    assert random.rand(4)._array.tolist() == expected
    assert random.rand(4, generator=second)._array.tolist() == drawn
    for again in (first.clone_state(), copy.deepcopy(first), pickle.loads(pickle.dumps(first))):
        assert again.get_state()._array.tolist() == first.get_state()._array.tolist()


def test_seeds():
    assert random.manual_seed(7) is random.default_generator
    assert random.initial_seed() == 7
    assert random.manual_seed(-3).initial_seed() == 2**64 - 3
    drawn = random.seed()
    assert random.initial_seed() == drawn != random.seed()
    for wrong in (2**64, -(2**63) - 1):
        with pytest.raises(ValueError, match="Overflow when unpacking long long"):
            random.manual_seed(wrong)


@pytest.mark.subprocess
def test_a_program_that_only_draws_has_the_methods(run_child):
    program = "from convcore.random import randn; print((randn(2) + 1).shape)"
    assert run_child(program) == "torch.Size([2])\n"


def test_generators_start_at_different_places_in_each_process(run_child):
    program = "from convcore import random; print(random.initial_seed())"
    assert run_child(program) != run_child(program)


def test_threads_share_a_generator_without_losing_numbers(seed):
    drawn = []
    generator = Generator().manual_seed(seed)
    threads = [
        threading.Thread(
            target=lambda: drawn.extend(
                random.randint(2**60, (50,), generator=generator)._array.tolist() for _ in range(40)
            )
        )
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    alone = random.randint(2**60, (8000,), generator=Generator().manual_seed(seed))._array
    assert sorted(number for run in drawn for number in run) == sorted(alone.tolist())


def test_uniform_numbers_stay_below_the_end(seed):
    for name, low, high in (("float16", -1, 1), ("float32", 1, 1 + 2**-20), ("float32", 5, 5)):
        array = np.empty(100_000, name)
        random.fill_uniform(array, low, high, Generator().manual_seed(seed))
        assert array.min() >= low and (array.max() < high or low == high)


def test_sizes_and_gradients():
    assert random.rand(2, 3).shape == random.rand((2, 3)).shape == random.rand(size=(2, 3)).shape
    assert random.randn((2, 2), requires_grad=True).requires_grad
    assert random.randint(3, size=(2,)).shape == random.randint(0, high=3, size=[2]).shape == (2,)
    assert random.randint(low=1, high=2, size=(3,))._array.tolist() == [1, 1, 1]
    assert random.randint(3, (2,), dtype=dtypes.float32).dtype is dtypes.float32
    for empty in (random.rand(0), random.randn(0, 4), random.randint(3, (0,)), random.randperm(0)):
        assert empty.numel() == 0


@pytest.mark.parametrize(
    ("draw", "error", "text"),
    [
        (lambda: random.rand(-1), RuntimeError, "negative dimension -1"),
        (lambda: random.rand(2, device="cuda"), RuntimeError, "computes on the CPU"),
        (lambda: Generator("cuda"), RuntimeError, "computes on the CPU"),
        (lambda: random.rand(2, dtype=dtypes.int64), NotImplementedError, "torch.int64"),
        (lambda: random.randn(2, dtype=dtypes.bool), NotImplementedError, "torch.bool"),
        (lambda: random.randint(5, 5, (2,)), RuntimeError, "from=5 >= to=5"),
        (lambda: random.randint(300, (2,), dtype=dtypes.uint8), RuntimeError, "out of bounds"),
        (lambda: random.randint(3, (2,), dtype=dtypes.bool), RuntimeError, "out of bounds"),
        (lambda: random.randint(3), TypeError, "high and size"),
        (lambda: random.randint(1, 2, 3, (2,)), TypeError, "high and size"),
        (lambda: random.randint_like(wrap(np.ones(2))), TypeError, "takes high"),
        (lambda: random.randint(3, (2,), requires_grad=True), RuntimeError, "Only Tensors of"),
        (lambda: random.normal(0, -1, (2,)), RuntimeError, "std >= 0.0, but found std -1"),
        (lambda: random.normal(0, wrap(np.array([-1.0]))), RuntimeError, "all elements of std"),
        (lambda: random.normal(0, 1), TypeError, "needs a size"),
        (lambda: random.fill_uniform(np.ones(2), 2, 1), RuntimeError, "from=2 > to=1"),
        (lambda: random.fill_bernoulli(np.ones(2), 1.5), RuntimeError, "but got p=1.5"),
        (lambda: random.fill_random(np.ones(2, complex)), NotImplementedError, "complex128"),
        (lambda: random.randperm(-1), RuntimeError, "negative dimension -1"),
        (lambda: random.fill_normal(np.ones(2), None), TypeError, "'mean' must be Number"),
        (lambda: random.fill_normal(np.ones(2), 0, "x"), TypeError, "'std' must be Number"),
        (lambda: random.fill_uniform(np.ones(2), "x"), TypeError, "'from' must be Number"),
        (lambda: random.fill_uniform(np.ones(2), 0, [1]), TypeError, "'to' must be Number"),
        (lambda: random.rand(2, generator=3), TypeError, "must be a Generator or None, got 3"),
        (lambda: random.randperm(2, generator="x"), TypeError, "must be a Generator .*, got 'x'"),
    ],
)
def test_draws_refuse(draw, error, text):
    with pytest.raises(error, match=text):
        draw()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_poisson_draws_pytorchs_numbers(torch, dtype):
    drawn = []
    for lib in (convcore, torch):
        lib.manual_seed(3)
        means = lib.linspace(0, 60, 300, dtype=getattr(lib, dtype))
        drawn += [lib.poisson(means).numpy(), lib.rand(1).item()]
    np.testing.assert_array_equal(drawn[0], drawn[2])
    assert drawn[1] == drawn[3]


def test_poisson_numbers_have_the_moments_of_their_distribution():
    convcore.manual_seed(0)
    for mean in (0.0, 3.0, 40.0):
        drawn = convcore.poisson(convcore.full((4000,), mean))
        assert abs(drawn.mean().item() - mean) <= 0.05 * mean
        assert abs(drawn.var().item() - mean) <= 0.1 * mean
    with pytest.raises(RuntimeError, match="invalid Poisson rate"):
        convcore.poisson(convcore.tensor([-1.0]))


def test_a_single_multinomial_index_is_pytorchs(torch):
    found = []
    for lib in (convcore, torch):
        lib.manual_seed(3)
        weights = lib.linspace(0.1, 2, 30).reshape(6, 5)
        found.append([lib.multinomial(weights, 1, True).tolist(), lib.rand(1).item()])
    assert found[0] == found[1]


# On the meta device


META = {
    "rand": lambda lib: lib.rand(3, device="meta"),
    "randn": lambda lib: lib.randn(3, device="meta"),
    "randint": lambda lib: lib.randint(5, (3,), device="meta"),
    "randperm": lambda lib: lib.randperm(3, device="meta"),
    "normal": lambda lib: lib.normal(0.0, 1.0, (3,), device="meta"),
    "rand_like": lambda lib: lib.rand_like(lib.empty(3, device="meta")),
    "uniform_": lambda lib: lib.empty(3, device="meta").uniform_().erfinv_().mul_(2).clamp_(-1, 1),
    "exponential_": lambda lib: lib.empty(3, device="meta").exponential_().log_(),
    "kaiming": lambda lib: lib.nn.init.kaiming_normal_(lib.empty(3, 2, device="meta")),
}


@pytest.mark.parametrize("name", META)
def test_nothing_is_drawn_on_the_meta_device(name):
    convcore.manual_seed(7)
    before = convcore.get_rng_state()
    made = META[name](convcore)
    assert made.is_meta and made.shape[0] == 3
    assert convcore.equal(convcore.get_rng_state(), before)


@pytest.mark.parametrize("name", META)
def test_what_is_made_on_the_meta_device_is_like_torchs(torch, name):
    ours, theirs = META[name](convcore), META[name](torch)
    assert (tuple(ours.shape), str(ours.dtype)) == (tuple(theirs.shape), str(theirs.dtype))


@pytest.mark.parametrize("name", ["trunc_normal_", "orthogonal_"])
def test_initialisation_on_the_meta_device_draws_nothing(name):
    convcore.manual_seed(7)
    before = convcore.get_rng_state()
    weight = convcore.empty(3, 2, device="meta")
    assert getattr(convcore.nn.init, name)(weight) is weight
    assert convcore.equal(convcore.get_rng_state(), before)


LOW_ENDS = [("int8", -128), ("int32", -7), ("int64", -(2**63)), ("float32", -5), ("uint8", 250)]


@pytest.mark.parametrize("name, low", LOW_ENDS)
def test_random_integers_up_to_the_largest(torch, both, name, low):
    both(4)
    ours = convcore.empty(40, dtype=getattr(convcore, name)).random_(low, None)
    assert ours.tolist() == torch.empty(40, dtype=getattr(torch, name)).random_(low, None).tolist()
    assert ours.min() >= low


def test_random_integers_that_a_float_cannot_hold_warn():
    x = convcore.empty(2)
    with pytest.warns(UserWarning, match="from is out of bounds .-16777216, 16777216.: of larger"):
        x.random_(-(2**30), 5)
    with pytest.raises(TypeError, match="at most two limits"):
        x.random_(1, 2, 3)


def test_ranges_beyond_a_dtype_are_refused(torch):
    for m in (convcore, torch):
        with pytest.raises(RuntimeError, match="uniform_ expects to-from"):
            m.ones(2).uniform_(-3e38, 3e38)
        with pytest.raises(RuntimeError, match="n cannot be greater than 2049 for Half type"):
            m.randperm(3000, dtype=m.float16)
        with pytest.raises(TypeError, match="must be int, not float"):
            m.randint(0.5, (2,))


def test_means_and_deviations_that_do_not_broadcast(torch):
    for m in (convcore, torch):
        with pytest.raises(RuntimeError, match=r"a \(5\) must match the size of tensor b \(4\) at"):
            m.normal(m.ones(2, 5), m.ones(4))


@pytest.mark.parametrize("limits", [(2**70,), (0, 2**64), (-(2**64), 0), (-(2**63) - 1, 2)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_limits_beyond_int64_are_refused_for_floats_too(limits, dtype):
    x = convcore.ones(2, dtype=getattr(convcore, dtype))
    with pytest.raises(RuntimeError, match=r"out of bounds for .*int64|too large"):
        x.random_(*limits)
    assert x.tolist() == [1, 1]


def test_limits_are_whole_numbers_of_any_kind(torch):
    for lib in (convcore, torch):
        x = lib.zeros(3, dtype=lib.int64)
        lib.manual_seed(0)
        expected = x.random_(1, 2**62).tolist()
        lib.manual_seed(0)
        assert x.random_(np.int64(1), 2**62).tolist() == expected
        with pytest.raises(TypeError):
            x.random_(1.0, 5)
