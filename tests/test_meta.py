"""The device 'meta': modules are built without memory, and filled later."""

import copy

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
    for compute in (lambda: made.sum(), lambda: made @ made, lambda: made[made > 0]):
        with pytest.raises(NotImplementedError, match="'meta' have no values"):
            compute()


# What has a shape and a dtype without values, and what PyTorch refuses as well.
EXPRESSIONS = (
    *("m + m", "m * 2", "2 - m", "i / i", "m // 2", "i % 3", "m ** 2", "-m", "m + 1j", "m + h"),
    *("m > 0", "m == m", "~(m > 0)", "m.exp()", "i.sin()", "m.clamp(0, 1)", "m.relu()", "m + c0"),
    *(
        "m.where(m > 0, 0)",
        "m.masked_fill(m > 0, -1)",
        "m.xlogy(2)",
        "torch.logit(m)",
        "m.lgamma()",
    ),
    *("m.clone()", "m.double()", "m.to(torch.bfloat16)", "m.contiguous()", "copy.deepcopy(m)"),
    *("torch.cat([m, m])", "torch.stack([m, m], 1)", "m.tile(2)", "m.repeat(2, 1, 1)", "m.flip(0)"),
    *("m.roll(1)", "m.tril()", "m.rot90()", "m.unfold(0, 2, 1)", "m.view(torch.int16)"),
    *("m.diag()", "m[0].diag()", "torch.diag_embed(m)"),
    *("torch.complex(m, m)", "torch.view_as_complex(p)", "F.channel_shuffle(images, 2)"),
    *("m.repeat_interleave(2)", "m.repeat_interleave(2, 1)"),
    *("m.repeat_interleave(i[0, :3], 0, output_size=6)", "m.repeat_interleave(i[0, :3], 0)"),
    *("m.as_strided((2, 2), (1, 2))", "m.as_strided((2, 2), (1, -2))", "m.resize_(5, 2)"),
    *("torch.tensor(m)", "torch.tensor(m, device='cpu')", "torch.as_tensor(m, device='cpu')"),
    *("torch.as_tensor(c, device='meta')", "torch.asarray(c, device='meta')", "m.cpu()"),
    *("torch.as_tensor([1, 2.0], device='meta')", "torch.tril_indices(3, 3, device='meta')"),
    *("m.new_zeros(2)", "m.new_tensor(c)", "c.new_tensor(m)", "m.new(2)", "m.new([1.0])"),
    *("m + c", "c + m", "torch.cat([m, c])", "torch.stack([c, m])", "torch.complex(m, c)", "c > m"),
    *("m.stride()", "m.data_ptr()", "m.storage_offset()", "m.is_contiguous()", "m.type()"),
    *("m.item()", "torch.full((2,), m[0, 0])", "f'{m[0, 0]}'", "m.share_memory_()"),
)


@pytest.mark.filterwarnings("ignore:To copy construct")
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_shapes_and_dtypes_are_pytorchs(torch, expression):
    found = [_answer(lib, expression) for lib in (convcore, torch)]
    assert found[0] == found[1]


def _answer(lib, expression):
    """Return what is known of a result on meta; of an error, that there is one."""
    names = {
        **{"torch": lib, "F": lib.nn.functional, "copy": copy},
        **{"m": lib.ones(3, 4, device="meta"), "i": lib.ones(3, 4, dtype=lib.int64, device="meta")},
        **{"h": lib.ones((), dtype=lib.float64, device="meta"), "p": lib.ones(3, 2, device="meta")},
        **{"c": lib.ones(3, 4), "c0": lib.ones(()), "images": lib.ones(1, 4, 2, 2, device="meta")},
    }
    try:
        found = eval(expression, names)
    except (RuntimeError, AttributeError) as error:
        return type(error).__mro__[-4:]
    if hasattr(found, "is_meta"):
        return tuple(found.shape), str(found.dtype), found.device.type
    return found


def test_gradients_are_asked_for_but_not_computed(lib):
    made = lib.ones(2, device="meta", requires_grad=True)
    doubled = made * 2
    assert doubled.requires_grad and doubled.grad_fn is not None


def test_a_module_may_compute_its_buffers_on_meta(lib):
    with lib.device("meta"):
        place = lib.arange(10**6)[:, None]
        rate = lib.exp(lib.arange(0, 8, 2) * -0.5)
        table = lib.cat([lib.sin(place * rate), lib.cos(place * rate)], 1)
        mask = lib.full((5, 5), float("-inf")).triu(1).masked_fill(lib.ones(5, 5) == 0, 0.0)
    assert table.shape == (10**6, 8) and table.is_meta and mask.is_meta


def test_no_memory_is_taken(lib):
    assert lib.ones(10**6, 10**6, device="meta").numel() == 10**12
    assert (lib.full((10**6, 10**6), 1.0, device="meta") + 1).is_meta


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
