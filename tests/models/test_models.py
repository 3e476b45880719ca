"""The nets: torchvision's names and sizes, PyTorch's numbers, forms and first values."""

import numpy as np
import pytest
from torch_twins import copied_state, models_of_torch

import convcore
from convcore import models, nn
from convcore.models import resnet

# Parameters, entries of the state, elements of buffers: torchvision's, and the U-Net's of the hub.
SIZES = {
    "lenet": (21_840, 8, 0),
    "resnet18": (11_689_512, 122, 9_620),
    "resnet34": (21_797_672, 218, 17_060),
    "resnet50": (25_557_032, 320, 53_173),
    "resnet101": (44_549_160, 626, 105_448),
    "vgg11": (132_863_336, 22, 0),
    "vgg11_bn": (132_868_840, 62, 5_512),
    "vgg13": (133_047_848, 26, 0),
    "vgg13_bn": (133_053_736, 76, 5_898),
    "vgg16": (138_357_544, 32, 0),
    "vgg16_bn": (138_365_992, 97, 8_461),
    "vgg19": (143_667_240, 38, 0),
    "vgg19_bn": (143_678_248, 118, 11_024),
    "mobilenet_v2": (3_504_872, 314, 34_164),
    "unet": (7_763_041, 118, 5_906),
    "autoencoder": (75_862_723, 22, 0),
}

# Entries of torchvision's checkpoints, and their shapes.
ENTRIES = {
    "resnet18": {
        "conv1.weight": (64, 3, 7, 7),
        "bn1.num_batches_tracked": (),
        "layer1.0.conv1.weight": (64, 64, 3, 3),
        "layer2.0.downsample.0.weight": (128, 64, 1, 1),
        "layer2.0.downsample.1.running_mean": (128,),
        "layer4.1.bn2.bias": (512,),
        "fc.weight": (1000, 512),
    },
    "resnet50": {
        "layer1.0.conv3.weight": (256, 64, 1, 1),
        "layer3.5.bn3.running_var": (1024,),
        "layer4.0.downsample.0.weight": (2048, 1024, 1, 1),
    },
    "vgg16": {"features.28.weight": (512, 512, 3, 3), "classifier.6.bias": (1000,)},
    "vgg16_bn": {"features.41.running_mean": (512,), "classifier.0.weight": (4096, 25088)},
    "mobilenet_v2": {
        "features.0.0.weight": (32, 3, 3, 3),
        "features.1.conv.0.0.weight": (32, 1, 3, 3),
        "features.1.conv.1.weight": (16, 32, 1, 1),
        "features.2.conv.3.bias": (24,),
        "features.18.1.num_batches_tracked": (),
        "classifier.1.weight": (1000, 1280),
    },
    "unet": {
        "encoder1.enc1conv1.weight": (32, 3, 3, 3),
        "bottleneck.bottlenecknorm2.weight": (512,),
        "upconv4.weight": (512, 256, 2, 2),
        "decoder1.dec1conv2.weight": (32, 32, 3, 3),
        "conv.bias": (1,),
    },
}


@pytest.fixture
def undrawn(monkeypatch):
    """Layers that keep whatever is in their memory: drawing 140 M numbers takes seconds."""
    for layer in (nn.Linear, nn.Conv2d, nn.ConvTranspose2d):
        monkeypatch.setattr(layer, "reset_parameters", lambda self: None)
    monkeypatch.setattr(nn.init, "kaiming_normal_", lambda *args, **kwargs: None)
    monkeypatch.setattr(nn.init, "normal_", lambda *args, **kwargs: None)
    monkeypatch.setattr(nn.init, "zeros_", lambda *args, **kwargs: None)


@pytest.mark.parametrize("name", SIZES)
def test_net_has_the_parameters_of_torchvisions(undrawn, name):
    net = getattr(models, name)()
    state = net.state_dict()
    n_parameters = sum(parameter.numel() for parameter in net.parameters())
    n_buffers = sum(buffer.numel() for buffer in net.buffers())
    assert (n_parameters, len(state), n_buffers) == SIZES[name]
    for entry, shape in ENTRIES.get(name, {}).items():
        assert tuple(state[entry].shape) == shape


@pytest.fixture(scope="module")
def twins():
    """The nets on PyTorch, or a skip."""
    pytest.importorskip("torch")
    return models_of_torch()


# Small forms of the nets, and what they take.
SMALL = {
    "lenet": (lambda m: m.lenet(), (2, 1, 28, 28)),
    "resnet8": (lambda m: m.resnet8(), (3, 3, 8, 8)),
    "resnet18": (lambda m: m.resnet18(num_classes=7), (2, 3, 40, 48)),
    "bottlenecks": (
        lambda m: m.ResNet(
            *(getattr(m, "Bottleneck", resnet.Bottleneck), (1, 1, 2, 1), 3),
            groups=2,
            width_per_group=16,
            replace_stride_with_dilation=(False, True, True),
            zero_init_residual=True,
        ),
        (2, 3, 33, 33),
    ),
    "vgg11_bn": (lambda m: m.vgg11_bn(init_weights=False).features, (2, 3, 32, 32)),
    "mobilenet_v2": (
        lambda m: m.mobilenet_v2(num_classes=5, width_mult=0.35, dropout=0.0),
        (2, 3, 64, 64),
    ),
    "unet": (lambda m: m.unet(init_features=4, depth=3), (2, 3, 24, 16)),
    "autoencoder": (lambda m: m.autoencoder(width=4), (2, 3, 64, 64)),
}


def pair(name, twins):
    """A small net and its twin with the same float64 weights."""
    make, shape = SMALL[name]
    ours, theirs = make(models).double(), make(twins).double()
    import torch

    theirs.load_state_dict(copied_state(ours, torch))
    return ours, theirs, shape


@pytest.mark.parametrize("name", [name for name in SMALL if name != "vgg11_bn"])
@pytest.mark.parametrize("training", [True, False])
def test_outputs_gradients_and_buffers_are_pytorchs(twins, rng, name, training):
    import torch

    ours, theirs, shape = pair(name, twins)
    training = training and name != "lenet"  # which draws in training
    pixels = rng.standard_normal(shape)
    outputs = []
    for library, net in ((convcore, ours), (torch, theirs)):
        net.train(training)
        x = library.from_numpy(pixels.copy()).requires_grad_()
        y = net(x)
        (y * y).sum().backward()
        grads = {key: p.grad.numpy() for key, p in net.named_parameters()}
        buffers = {key: b.numpy() for key, b in net.named_buffers()}
        outputs.append({"y": y.detach().numpy(), "x": x.grad.numpy(), **grads, **buffers})
    for key, expected in outputs[1].items():
        scale = max(np.abs(expected).max(initial=0), 1e-3)  # some gradients are 0 but for rounding
        error = {"rtol": 0, "atol": 1e-8 * scale, "err_msg": key}
        np.testing.assert_allclose(outputs[0][key], expected, **error)


@pytest.mark.parametrize("format", ["contiguous_format", "channels_last"])
def test_resnet18_trains_as_on_pytorch(twins, rng, format):
    """Five losses in float64, with momentum and new pictures each step."""
    import torch

    ours, theirs, shape = pair("resnet18", twins)
    ours = ours.to(memory_format=getattr(convcore, format))
    batches = [(rng.standard_normal(shape), rng.integers(0, 7, shape[0])) for _ in range(5)]
    losses = []
    for library, net in ((convcore, ours), (torch, theirs)):
        sgd = library.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
        found = []
        for pixels, labels in batches:
            scores = net(library.from_numpy(pixels))
            loss = library.nn.functional.cross_entropy(scores, library.from_numpy(labels))
            sgd.zero_grad()
            loss.backward()
            sgd.step()
            found.append(loss.item())
        losses.append(found)
    assert losses[0] == pytest.approx(losses[1], rel=1e-9)
    assert len(set(losses[0])) == 5


def test_hooks_between_norm_and_activation_are_called(rng):
    """Fused where nobody looks, one after the other where somebody does: the same results."""
    net = models.resnet8().eval()
    x = convcore.from_numpy(rng.standard_normal((2, 3, 8, 8)).astype(np.float32))
    fused = net(x)
    seen = []
    handles = [
        module.register_forward_hook(lambda module, args, output: seen.append(type(module)))
        for module in net.modules()
        if isinstance(module, (nn.BatchNorm2d, nn.ReLU))
    ]
    apart = net(x)
    assert len(seen) == 9 + 7
    assert type(fused.grad_fn) is type(apart.grad_fn)
    np.testing.assert_allclose(fused.detach().numpy(), apart.detach().numpy(), rtol=1e-4, atol=1e-5)
    for handle in handles:
        handle.remove()
    with convcore.no_grad():
        nn.modules.module.register_module_forward_hook(lambda *args: seen.append(None)).remove()
        net(x)
    assert len(seen) == 16


def test_batch_norms_of_vgg_and_unet_take_their_relus_along(rng):
    """In one node of the graph, unless somebody looks; a slice and another order work too."""
    features = models.vgg11_bn(init_weights=False).features[:8]
    x = convcore.from_numpy(rng.standard_normal((2, 3, 16, 16)).astype(np.float32))

    def nodes(y):
        names, fn = [], y.grad_fn
        while fn is not None:
            names.append(fn.name())
            fn = fn.next_functions[0][0]
        return names

    fused = nodes(features(x))
    assert len(fused) == 6 and "ReluBackward0" not in fused  # conv, norm, pool, twice
    seen = []
    handle = features[1].register_forward_hook(lambda *args: seen.append(args))
    watched = nodes(features(x))
    handle.remove()
    assert len(seen) == 1 and len(watched) == 7 and watched.count("ReluBackward0") == 1
    assert nodes(features(x)) == fused
    block = models.unet(init_features=4, depth=1).encoder1
    assert "ReluBackward0" not in nodes(block(x))
    block[2] = nn.Sigmoid()
    assert "SigmoidBackward0" in nodes(block(x))


@pytest.mark.parametrize("name", ["lenet", "resnet18", "bottlenecks", "mobilenet_v2", "unet"])
def test_net_prints_as_pytorchs(twins, undrawn, name):
    ours = repr(SMALL[name][0](models))
    assert ours == repr(SMALL[name][0](twins))


def test_vgg_prints_as_pytorchs(twins, undrawn):
    ours, theirs = repr(models.vgg11_bn()), repr(twins.vgg11_bn(init_weights=False))
    assert ours == theirs


@pytest.mark.parametrize("name", ["resnet8", "mobilenet_v2", "unet", "lenet"])
def test_first_values_are_those_that_pytorch_draws(twins, seed, name):
    import torch

    states = []
    for library, where in ((convcore, models), (torch, twins)):
        library.manual_seed(seed)
        states.append({k: v.numpy() for k, v in SMALL[name][0](where).state_dict().items()})
    for key, expected in states[1].items():
        np.testing.assert_allclose(states[0][key], expected, rtol=2e-5, atol=2e-6, err_msg=key)


def test_vgg_draws_small_weights_for_its_linear_layers(monkeypatch):
    drawn = []
    monkeypatch.setattr(nn.init, "normal_", lambda weight, mean, std: drawn.append((mean, std)))
    monkeypatch.setattr(nn.init, "kaiming_normal_", lambda *args, **kwargs: None)
    monkeypatch.setattr(nn.Linear, "reset_parameters", lambda self: None)
    net = models.vgg11()
    assert drawn == [(0, 0.01)] * 3
    assert all((m.bias == 0).all() for m in net.modules() if isinstance(m, nn.Linear))


@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v2", "unet"])
def test_channels_last_flows_through(name, rng):
    make, shape = SMALL[name]
    net = make(models).eval()
    x = convcore.from_numpy(rng.standard_normal(shape).astype(np.float32))
    with convcore.no_grad():
        plain = net(x)
        other = net.to(memory_format=convcore.channels_last)(
            x.contiguous(memory_format=convcore.channels_last)
        )
    np.testing.assert_allclose(other.numpy(), plain.numpy(), rtol=1e-3, atol=1e-4)


def test_resnet18_shows_its_maps_to_pre_hooks(rng):
    """Before each of its 20 convolutions the first four maps are drawn, as the seed program did."""
    pytest.importorskip("matplotlib")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    net = models.resnet18().eval()
    drawn = []

    def draw(module, args):
        figure = Figure(figsize=(4, 1))
        FigureCanvasAgg(figure)
        maps = args[0][0]
        for ax, i in zip(figure.subplots(1, 4), range(min(4, len(maps))), strict=False):
            ax.imshow(maps[i].cpu())
        figure.canvas.draw()
        drawn.append((np.asarray(figure.canvas.buffer_rgba()).std(), tuple(maps.shape)))

    for module in net.modules():
        if isinstance(module, nn.Conv2d):
            module.register_forward_pre_hook(draw)
    with convcore.no_grad():
        net(convcore.from_numpy(rng.random((1, 3, 64, 64), np.float32)))
    assert len(drawn) == 20
    assert min(spread for spread, _ in drawn) > 10
    assert drawn[0][1] == (3, 64, 64) and drawn[-1][1] == (512, 2, 2)


def test_encoder_is_that_of_the_seed_program(undrawn):
    encoder = models.Encoder()
    parameters = list(encoder.parameters())
    assert len(parameters) == 14 and all(parameter.requires_grad for parameter in parameters)
    assert sum(parameter.numel() for parameter in parameters) == 69_662_976
    kinds = [type(module).__name__ for module in encoder]
    assert kinds == ["Down"] * 4 + ["Flatten", "Linear", "Linear", "Reshape", "Up"]
    small = models.Encoder(width=2, code=3)
    assert small(convcore.zeros(2, 3, 64, 64)).shape == (2, 8, 8, 8)


def test_shuffle_puts_blocks_of_channels_in_the_places_of_pixels():
    from convcore.models.autoencoder import Shuffle

    x = convcore.arange(8).view(1, 8, 1, 1)
    assert Shuffle()(x).tolist() == [[[[0, 2], [4, 6]], [[1, 3], [5, 7]]]]


def test_checkpoint_loads_by_name():
    source, target = models.resnet8(num_classes=3), models.resnet8(num_classes=3)
    keys = target.load_state_dict(source.state_dict())
    assert not keys.missing_keys and not keys.unexpected_keys
    assert convcore.equal(target.fc.weight, source.fc.weight)


@pytest.mark.parametrize("name", ["resnet18", "vgg16", "mobilenet_v2", "unet"])
def test_weights_to_download_are_refused(name):
    make = getattr(models, name)
    with pytest.raises(ValueError, match=r"weights must be None, got 'DEFAULT'.*load_state_dict"):
        make(weights="DEFAULT")
    with pytest.raises(ValueError, match=r"weights must be None, got True.*load_state_dict"):
        make(True)
    with pytest.raises(ValueError, match=r"pretrained must be False, got True.*load_state_dict"):
        make(pretrained=True)


def test_torchvisions_words_for_no_weights_are_taken():
    assert repr(models.unet(pretrained=False, progress=True)) == repr(models.unet(weights=None))


def test_names_of_weights_say_that_there_are_none():
    for name in ("get_model", "list_models"):
        with pytest.raises(AttributeError) as caught:
            getattr(models, name)
        assert "getattr(models, 'resnet18')()" in str(caught.value)
    with pytest.raises(AttributeError, match="no attribute 'ResNet18_Weights'") as caught:
        _ = models.ResNet18_Weights
    assert "load_state_dict" in str(caught.value)
    with pytest.raises(AttributeError, match="no attribute 'alexnet'") as caught:
        _ = models.alexnet
    assert "Hint: " not in str(caught.value)


def test_impossible_nets_are_refused():
    with pytest.raises(ValueError, match="groups=1 and base_width=64"):
        models.resnet18(groups=2)
    with pytest.raises(ValueError, match="3-element tuple"):
        models.resnet50(replace_stride_with_dilation=(True,))
    with pytest.raises(ValueError, match="stride should be 1 or 2 instead of 3"):
        models.mobilenet_v2(inverted_residual_setting=[(1, 16, 1, 3)])
    with pytest.raises(ValueError, match="depth must be at least 1, got 0"):
        models.unet(depth=0)
    with pytest.raises(ValueError, match="width must be even and at least 2, got 3"):
        models.autoencoder(width=3)


def test_net_of_another_library_has_its_modules(torch):
    ours, theirs = models.unet(depth=1), models.unet(depth=1, library=torch)
    assert type(ours) is models.UNet
    assert isinstance(theirs, torch.nn.Module) and not isinstance(theirs, nn.Module)
    assert type(theirs) is type(models.unet(library=torch))
    assert list(theirs.state_dict()) == list(ours.state_dict())
