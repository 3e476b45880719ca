"""Lazy layers, synchronised normalization and wrapped modules: what PyTorch makes of them."""

from __future__ import annotations

import copy
import pickle
import warnings

import numpy as np
import pytest
from same_lines import check, check_error, state, told

import convcore
from convcore import nn

LAYERS = {
    "linear": (lambda n: n.LazyLinear(3), (2, 4)),
    "linear without bias": (lambda n: n.LazyLinear(3, bias=False), (2, 4)),
    "conv1d": (lambda n: n.LazyConv1d(4, 3), (2, 3, 8)),
    "conv2d": (lambda n: n.LazyConv2d(4, 3, padding=1, groups=2), (2, 6, 5, 5)),
    "conv2d by place": (lambda n: n.LazyConv2d(4, 3, 2, 1, 1, 1, False), (3, 5, 5)),
    "conv3d": (lambda n: n.LazyConv3d(2, 2), (1, 3, 4, 4, 4)),
    "transposed 1": (lambda n: n.LazyConvTranspose1d(4, 3, 2), (2, 3, 5)),
    "transposed 2": (lambda n: n.LazyConvTranspose2d(4, 3, 2, bias=False), (2, 3, 5, 5)),
    "transposed 3": (lambda n: n.LazyConvTranspose3d(4, 2), (2, 3, 3, 3, 3)),
    "norm 1": (lambda n: n.LazyBatchNorm1d(), (4, 3)),
    "norm 2": (lambda n: n.LazyBatchNorm2d(momentum=0.3), (4, 3, 2, 2)),
    "norm 3": (lambda n: n.LazyBatchNorm3d(affine=False), (4, 3, 2, 2, 2)),
    "untracked": (lambda n: n.LazyBatchNorm2d(track_running_stats=False), (4, 3, 2, 2)),
    "instance": (lambda n: n.LazyInstanceNorm2d(), (2, 3, 4, 4)),
    "plain instance": (
        lambda n: n.LazyInstanceNorm1d(affine=False, track_running_stats=False),
        (2, 3, 4),
    ),
}


@pytest.mark.filterwarnings("ignore:input's size at dim=1 does not match")
@pytest.mark.parametrize(("make", "shape"), LAYERS.values(), ids=LAYERS)
def test_first_input_decides(torch, make, shape):
    def run(lib):
        layer, other = make(lib.nn), make(lib.nn)
        out = [repr(layer), [repr(value) for value in layer.state_dict().values()][:1]]
        optimizer = lib.optim.SGD([*layer.parameters(), lib.ones(1)], lr=0.1)
        y = layer(lib.rand(*shape))
        (y * y + lib.ones(1, requires_grad=True)).sum().backward()
        optimizer.step()
        out += [y, repr(layer), type(layer).__name__, state(layer)]
        other.load_state_dict(layer.state_dict())
        # A loaded instance normalization does not know its number of channels, and refuses inputs.
        return [*out, told(lib, lambda lib: other.eval()(lib.ones(*shape))), repr(other)]

    check(torch, run)


def test_lazy_layer_draws_what_the_plain_one_draws():
    convcore.manual_seed(1)
    plain = nn.Linear(4, 3)
    lazy = nn.LazyLinear(3)
    convcore.manual_seed(1)
    lazy(convcore.ones(2, 4))
    assert type(lazy) is nn.Linear
    assert lazy.weight.tolist() == plain.weight.tolist()
    assert not lazy._forward_pre_hooks
    assert not lazy._load_state_dict_pre_hooks


def test_lazy_layer_takes_a_dtype_before_and_can_be_copied():
    layer = copy.deepcopy(nn.LazyLinear(2)).double()
    assert layer(convcore.ones(3, dtype=convcore.float64)).dtype is convcore.float64
    assert layer.weight.shape == (2, 3)


ERRORS = {
    "shape": lambda lib: lib.nn.LazyLinear(3).weight.shape,
    "rank": lambda lib: lib.nn.LazyConv2d(3, 2)(lib.ones(3)),
    "groups": lambda lib: lib.nn.LazyConv2d(4, 2, groups=2)(lib.ones(1, 3, 4, 4)),
    "load": lambda lib: lib.nn.Linear(2, 3).load_state_dict(lib.nn.LazyLinear(3).state_dict()),
    "weight norm": lambda lib: lib.nn.utils.weight_norm(lib.nn.LazyLinear(3)),
    "spectral norm": lambda lib: lib.nn.utils.spectral_norm(lib.nn.LazyLinear(3)),
    "sharing": lambda lib: lib.nn.LazyBatchNorm1d().share_memory(),
    "rank of norm": lambda lib: lib.nn.SyncBatchNorm(3)(lib.ones(2)),
}


@pytest.mark.parametrize("function", ERRORS.values(), ids=ERRORS)
def test_errors_are_pytorchs(torch, function):
    check_error(torch, function)


def test_a_lazy_state_loads_into_a_lazy_layer():
    layer = nn.LazyLinear(3)
    layer.load_state_dict(nn.LazyLinear(3).state_dict())
    assert layer.has_uninitialized_params()


def test_a_buffer_without_a_shape_is_a_buffer():
    module = nn.Module()
    module.running = nn.UninitializedBuffer()
    assert list(dict(module.named_buffers())) == ["running"]
    module.running.materialize((2, 3))
    assert type(module.running) is convcore.Tensor and module.running.shape == (2, 3)


# Uses of a tensor without a shape, p.  Each computed with an empty tensor before.
USES = {
    "add": lambda lib, p: lib.add(p, p),
    "operator": lambda lib, p: 1 - p,
    "method": lambda lib, p: p.sum(),
    "in place": lambda lib, p: p.fill_(1),
    "second argument": lambda lib, p: lib.ones(2).mul_(p),
    "keyword": lambda lib, p: lib.full((2,), 1.0, out=p),
    "list": lambda lib, p: lib.cat([lib.ones(1), p]),
    "like": lambda lib, p: lib.empty_like(p),
    "index": lambda lib, p: p[0],
    "set item": lambda lib, p: p.__setitem__(0, 1),
    "layer": lambda lib, p: lib.nn.functional.linear(lib.ones(2, 3), p),
    "init": lambda lib, p: lib.nn.init.ones_(p),
    "length": lambda lib, p: len(p),
    "list of": lambda lib, p: p.tolist(),
    "view": lambda lib, p: p.view(-1),
    "equal": lambda lib, p: lib.equal(p, p),
    "shape test": lambda lib, p: p.is_contiguous(),
    "converted": lambda lib, p: p.type_as(lib.ones(1)),
}


@pytest.mark.parametrize("kind", ["UninitializedParameter", "UninitializedBuffer"])
@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_nothing_computes_with_a_tensor_without_a_shape(torch, kind, use):
    for lib in (convcore, torch):
        with pytest.raises(ValueError, match=f"Attempted to use an uninitialized .*{kind}"):
            use(lib, getattr(lib.nn, kind)())


@pytest.mark.parametrize("name", ["numel", "size", "dim", "item", "double", "detach"])
def test_values_and_sizes_are_not_known_before(name):
    with pytest.raises(ValueError, match="uninitialized parameter"):
        convcore.zeros(0).add(getattr(nn.LazyLinear(3).weight, name)())
    with pytest.raises(ValueError, match="uninitialized parameter"):
        nn.LazyLinear(3).weight.data.fill_(1)


def test_the_error_names_the_function():
    weight = nn.UninitializedParameter()
    with pytest.raises(ValueError, match=r"parameter in relu[.] "):
        nn.functional.relu(weight)
    with pytest.raises(ValueError, match=r"parameter in linear[.] "):
        nn.functional.linear(convcore.ones(1, 2), weight)
    with pytest.raises(ValueError, match=r"parameter in add[.] "):
        weight + 1


def test_what_needs_no_shape_is_known(torch):
    def run(lib):
        p = lib.nn.UninitializedParameter(device="meta", dtype=lib.float64)
        net = lib.nn.Sequential(lib.nn.LazyBatchNorm1d(), lib.nn.LazyLinear(2))
        kinds = [type(value).__name__ for value in net.half().state_dict().values()]
        net.load_state_dict(net.state_dict())
        copied = copy.deepcopy(p)
        p.materialize((2, 3))
        loaded = pickle.loads(pickle.dumps(net[1].weight))
        out = [kinds, repr(copied), str(copied.dtype), str(copied.device), copied.requires_grad]
        out += [type(p).__name__, str(p.dtype), p.is_meta, tuple(p.shape), type(loaded).__name__]
        layer = lib.nn.LazyLinear(2).double().float().to(lib.float64)
        out += [layer(lib.ones(1, 3, dtype=lib.float64)).dtype == lib.float64]
        return [*out, hash(p) == id(p), p.grad, copied.is_leaf, copied.grad_fn]

    assert run(convcore) == run(torch)


def test_a_buffer_without_a_shape_stays_one():
    norm = nn.LazyBatchNorm2d().double()
    copied = copy.deepcopy(norm)
    for layer in (norm, copied):
        assert nn.parameter.is_lazy(layer.running_mean)
        layer(convcore.ones(2, 3, 4, 4, dtype=convcore.float64))
        assert layer.running_var.shape == (3,) and layer.running_var.dtype is convcore.float64
    buffer = nn.UninitializedBuffer(persistent=False)
    for other in (copy.deepcopy(buffer), pickle.loads(pickle.dumps(buffer))):
        assert other.persistent is False and type(other) is nn.UninitializedBuffer


def test_synchronised_normalization_is_batch_normalization_in_one_process(torch, rng):
    x = rng.standard_normal((4, 3, 2, 2)).astype("f4")

    def run(lib):
        net = lib.nn.Sequential(lib.nn.BatchNorm2d(3), lib.nn.Sequential(lib.nn.BatchNorm2d(3)))
        made = lib.nn.SyncBatchNorm.convert_sync_batchnorm(net)
        same = made[0].weight is net[0].weight
        return [repr(made), made(lib.from_numpy(x)), state(made), same]

    check(torch, run, 1e-5)
    layer, plain = nn.SyncBatchNorm(3), nn.BatchNorm2d(3)
    assert layer(convcore.from_numpy(x)).tolist() == plain(convcore.from_numpy(x)).tolist()


def test_wrapped_module_has_its_prefix(torch):
    def run(lib):
        wrapped = lib.nn.DataParallel(lib.nn.Linear(2, 3))
        return [repr(wrapped), state(wrapped), wrapped(lib.ones(1, 2)), len(wrapped.device_ids)]

    check(torch, run, 1e-5)
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        nn.parallel.DistributedDataParallel(nn.Linear(1, 1))
    with warnings.catch_warnings(action="error"):
        np.testing.assert_array_equal(nn.parallel.data_parallel(nn.ReLU(), -convcore.ones(2)), 0)
