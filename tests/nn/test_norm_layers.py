"""Normalization layers by their formulas: statistics, momentum, groups, options and states."""

from __future__ import annotations

import numpy as np
import pytest

import convcore
from convcore import distributed, nn
from convcore.distributed import ProcessGroup

EPS = 1e-5


def normalized(x, axes, eps=EPS):
    """Return (x - mean) / sqrt(variance + eps) over some axes."""
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


def grouped(x, n_groups):
    parts = x.reshape(x.shape[0], n_groups, -1)
    return normalized(parts, -1).reshape(x.shape)


FORMULAS = {
    "BatchNorm": (lambda: nn.BatchNorm2d(4), lambda x: normalized(x, (0, 2, 3))),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), lambda x: grouped(x, 2)),
    "GroupNorm, plain": (lambda: nn.GroupNorm(4, 4, affine=False), lambda x: grouped(x, 4)),
    "InstanceNorm": (lambda: nn.InstanceNorm2d(4), lambda x: normalized(x, (2, 3))),
    "LayerNorm": (lambda: nn.LayerNorm((5, 3)), lambda x: normalized(x, (2, 3))),
    "LayerNorm, eps": (lambda: nn.LayerNorm(3, eps=0.5), lambda x: normalized(x, 3, 0.5)),
    "RMSNorm": (
        lambda: nn.RMSNorm(3, eps=0.5),
        lambda x: x / np.sqrt((x * x).mean(3, keepdims=True) + 0.5),
    ),
    "RMSNorm, plain": (
        lambda: nn.RMSNorm((5, 3), eps=0.0, elementwise_affine=False),
        lambda x: x / np.sqrt((x * x).mean((2, 3), keepdims=True)),
    ),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_layer_is_its_formula(name, rng):
    make, formula = FORMULAS[name]
    layer, x = make().double(), rng.standard_normal((2, 4, 5, 3))
    expected = formula(x)
    np.testing.assert_allclose(layer(convcore.from_numpy(x)).detach().numpy(), expected, 1e-9)
    if layer.weight is not None:
        layer.weight.data.fill_(3.0)
        if getattr(layer, "bias", None) is not None:
            layer.bias.data.fill_(0.5)
            expected = expected + 0.5 / 3
        found = layer(convcore.from_numpy(x)).detach().numpy()
        np.testing.assert_allclose(found, 3 * expected, 1e-9, 1e-12)
        layer.reset_parameters()
        assert (layer.weight == 1).all()


def test_groups_must_divide_the_channels():
    with pytest.raises(ValueError, match="divisible by num_groups"):
        nn.GroupNorm(3, 4)


def batches(rng, n=3):
    return [rng.standard_normal((6, 2)) * 2 + 1 for _ in range(n)]


@pytest.mark.parametrize("make", [nn.BatchNorm1d, nn.SyncBatchNorm])
@pytest.mark.parametrize("momentum", [0.25, None])
def test_running_statistics_follow_the_batches(make, momentum, rng):
    layer, mean, var = make(2, momentum=momentum).double(), 0.0, 1.0
    drawn = batches(rng)
    for number, x in enumerate(drawn, 1):
        share = momentum or 1 / number
        mean = mean + share * (x.mean(0) - mean)
        var = var + share * (x.var(0, ddof=1) - var)
        layer(convcore.from_numpy(x))
        assert layer.num_batches_tracked.item() == number
    np.testing.assert_allclose(layer.running_mean.numpy(), mean, 1e-12)
    np.testing.assert_allclose(layer.running_var.numpy(), var, 1e-12)
    layer.eval()
    found = layer(convcore.from_numpy(drawn[0])).detach().numpy()
    np.testing.assert_allclose(found, (drawn[0] - mean) / np.sqrt(var + EPS), 1e-9)
    assert layer.num_batches_tracked.item() == len(drawn)
    layer.reset_running_stats()
    assert layer.num_batches_tracked.item() == 0
    assert layer.running_mean.tolist() == [0, 0]
    assert layer.running_var.tolist() == [1, 1]


class EqualBatches(ProcessGroup):
    """A group of ``n`` processes whose batches are all equal to this one's."""

    destroyed = False
    layers = property(lambda self: self)

    def __init__(self, n):
        self.n = n

    def rank(self):
        return 0

    def size(self):
        return self.n

    def wait(self, request, what):
        pass

    def Iallgather(self, sent, received):
        received[...] = sent

    def Iallreduce(self, sent, received):
        received[...] = self.n * sent


@pytest.fixture
def synced(monkeypatch):
    """Return SyncBatchNorm of two channels in float64, in a group of n processes."""
    monkeypatch.setattr(distributed, "is_initialized", lambda: True)
    return lambda n: nn.SyncBatchNorm(2, process_group=EqualBatches(n)).double()


@pytest.mark.parametrize("n", [1, 2, 3])
def test_synced_layer_is_batch_norm_of_the_joined_batch(synced, n, rng):
    layer, plain = synced(n), nn.BatchNorm1d(2).double()
    (array,) = batches(rng, 1)
    x, joined = (
        convcore.from_numpy(np.tile(array, (times, 1))).requires_grad_() for times in (1, n)
    )
    for net, input in ((layer, x), (plain, joined)):
        net(input).pow(3).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), joined.grad.numpy()[:6], 1e-9, 1e-12)
    for name, buffer in plain.named_buffers():
        np.testing.assert_allclose(getattr(layer, name), buffer, 1e-12, err_msg=name)
    layer.eval(), plain.eval()
    np.testing.assert_allclose(layer(x).detach(), plain(x).detach(), 1e-12)
    assert layer.num_batches_tracked.item() == 1


def test_synced_layer_refuses_other_channels(synced):
    with pytest.raises(ValueError, match="must have 2 channels in axis 1, but has 3"):
        synced(2)(convcore.ones(4, 3))


def test_layer_without_statistics_takes_those_of_the_batch(rng):
    layer = nn.BatchNorm1d(2, track_running_stats=False, momentum=None).double()
    (x,) = batches(rng, 1)
    for _ in range(2):
        found = layer(convcore.from_numpy(x)).detach().numpy()
        np.testing.assert_allclose(found, normalized(x, 0), 1e-9)
        layer.eval()
    assert layer.num_batches_tracked is None


def test_statistics_are_left_alone_once_they_are_not_tracked(rng):
    layer = nn.BatchNorm1d(2).double()
    layer.track_running_stats = False
    (x,) = batches(rng, 1)
    found = layer(convcore.from_numpy(x)).detach().numpy()
    np.testing.assert_allclose(found, normalized(x, 0), 1e-9)
    assert layer.num_batches_tracked.item() == 0
    assert layer.running_mean.tolist() == [0, 0]


def test_evaluation_needs_both_statistics_or_none(rng):
    layer = nn.BatchNorm1d(2).double().eval()
    (x,) = batches(rng, 1)
    layer.running_mean = None
    with pytest.raises((RuntimeError, ValueError)):
        layer(convcore.from_numpy(x))
    layer.running_var = None
    found = layer(convcore.from_numpy(x)).detach().numpy()
    np.testing.assert_allclose(found, normalized(x, 0), 1e-9)


def test_refused_batch_is_not_counted():
    layer = nn.BatchNorm1d(2)
    with pytest.raises(ValueError, match="more than 1 value"):
        layer(convcore.ones(1, 2))
    assert layer.num_batches_tracked.item() == 0


def test_state_of_version_1_has_no_count():
    layer = nn.BatchNorm1d(2)
    state = layer.state_dict()
    del state["num_batches_tracked"]
    with pytest.raises(RuntimeError, match="num_batches_tracked"):
        layer.load_state_dict(state)
    state._metadata[""]["version"] = 1
    layer.load_state_dict(state)
