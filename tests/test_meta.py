"""The device 'meta': modules are built without memory, and filled later."""

from __future__ import annotations

import pytest

import convcore
from convcore import nn
from convcore.nn import functional as F


def test_a_module_is_built_without_memory_and_filled_by_a_state():
    with convcore.device("meta"):
        net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Linear(10**6, 10**5))
    assert all(tensor.is_meta for tensor in net.state_dict().values())
    assert net[2].weight.numel() == 10**11 and net[2].weight._array.base is not None
    small = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4))
    net[:2].load_state_dict(small.state_dict(), assign=True)
    assert net[0].weight.device.type == "cpu" and (net[0].weight == small[0].weight).all()


def test_to_empty_gives_memory(lib):
    layer = lib.nn.Linear(2, 3, device="meta")
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor; no data!"):
        layer.to("cpu")
    layer.to_empty(device="cpu")
    assert layer.weight.device.type == "cpu" and layer.weight.requires_grad
    lib.nn.init.ones_(layer.weight)
    assert layer.weight.sum().item() == 6


def test_creation_printing_and_values(lib):
    made = lib.zeros(2, 3, device="meta")
    assert repr(made) == "tensor(..., device='meta', size=(2, 3))"
    assert lib.empty_like(made).is_meta and lib.rand(2, device="meta").is_meta
    assert lib.ones(2).to("meta").shape == (2,)
    assert made.expand(4, 2, 3).is_meta and made.T[0].is_meta
    with pytest.raises(RuntimeError, match=r"item\(\) cannot be called on meta tensors"):
        lib.zeros((), device="meta").item()
    made.fill_(3)
    made.uniform_()
    with pytest.raises(TypeError, match="can't convert meta device type tensor to numpy"):
        made.numpy()


def test_there_are_no_values_to_compute_with():
    made = convcore.ones(2, device="meta")
    for compute in (lambda: made + 1, lambda: made * made, lambda: made.clone()):
        with pytest.raises(NotImplementedError, match="'meta' have no values"):
            compute()


def test_an_element_is_not_read(lib):
    one = lib.ones(1, device="meta")
    for read in (bool, float, lib.Tensor.item):
        with pytest.raises(RuntimeError, match=r"Tensor.item\(\) cannot be called on meta tensors"):
            read(one)
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor; no data!"):
        one.tolist()


def on_meta(*shape):
    return convcore.ones(*shape, device="meta")


IMAGES = convcore.ones(1, 2, 4, 4)


@pytest.mark.parametrize(
    "compute",
    [
        lambda: F.linear(convcore.ones(2, 3), on_meta(4, 3)),
        lambda: convcore.ones(2, 3) @ on_meta(3),
        lambda: convcore.bmm(convcore.ones(1, 2, 3), on_meta(1, 3, 2)),
        lambda: F.conv2d(IMAGES, on_meta(2, 2, 3, 3)),
        lambda: F.conv2d(IMAGES, convcore.ones(2, 2, 3, 3), on_meta(2)),
        lambda: F.conv_transpose2d(IMAGES, on_meta(2, 2, 3, 3)),
        lambda: F.layer_norm(convcore.ones(2, 3), (3,), on_meta(3)),
        lambda: F.batch_norm(IMAGES, None, None, on_meta(2), training=True),
        lambda: F.group_norm(IMAGES, 2, None, on_meta(2)),
    ],
)
def test_layers_with_weights_on_meta_are_refused(compute):
    with pytest.raises(NotImplementedError, match="'meta' have no values"):
        compute()


@pytest.mark.parametrize(
    "compute",
    [
        F.gelu,
        F.leaky_relu,
        F.relu6,
        lambda x: F.layer_norm(x, (4,)),
        lambda x: F.group_norm(x, 1),
        F.instance_norm,
        lambda x: F.batch_norm(x, None, None, training=True),
        lambda x: F.pad(x, (1, 1)),
        lambda x: F.pad(x, (1, 1, 1, 1), "reflect"),
        lambda x: F.adaptive_avg_pool2d(x, 2),
        lambda x: F.max_pool2d(x, 2),
        lambda x: F.max_pool2d(x, 2, return_indices=True),
        lambda x: F.interpolate(x, size=2, mode="area"),
        lambda x: x == 2,
        lambda x: x > 2,
        lambda x: x[0, 0, 0, 0] + 2,
        lambda x: IMAGES + x[0, 0, 0, 0],
        lambda x: IMAGES.clone().add_(x),
    ],
)
def test_layers_of_inputs_on_meta_are_refused(compute):
    compute(IMAGES)  # what is kept of a shape is not to let one without values pass
    with pytest.raises(NotImplementedError, match="'meta' have no values"):
        compute(on_meta(1, 2, 4, 4))


def test_nothing_is_copied_from_meta(lib):
    layer = lib.nn.Linear(2, 3)
    before = layer.weight.detach().clone()
    wrong = lib.nn.Linear(2, 3, device="meta").state_dict()
    with pytest.raises(RuntimeError, match="Cannot copy out of meta tensor; no data!"):
        layer.load_state_dict(wrong)
    assert (layer.weight == before).all()
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor; no data!"):
        lib.ones(2).copy_(lib.ones(2, device="meta"))
