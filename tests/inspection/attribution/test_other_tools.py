"""Attribution against captum's, pytorch-grad-cam's and zennit's figures on the same net in PyTorch.

There each call has a module of its own, and nothing is in place: that is where theirs are right.
Here one net is like that too; the others, like DenseNet and ShuffleNet, call modules again, and
have ReLUs in place.
"""

import copy

import numpy as np
import pytest
from attribution_nets import nets
from torchvision_on_pytorch import import_torchvision

import convcore
from convcore.inspection import attribution

torch = pytest.importorskip("torch")


def built_of(nn):
    return nn.Sequential(
        nn.Conv2d(3, 6, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 8, 3), nn.ReLU(),
        nn.AvgPool2d(2), nn.Flatten(), nn.Linear(8, 5), nn.ReLU(), nn.Linear(5, 3),
    )  # fmt: skip


def plain_twins():
    convcore.manual_seed(0)
    ours, theirs = built_of(convcore.nn).double(), built_of(torch.nn).double()
    theirs.load_state_dict({k: torch.tensor(v.numpy()) for k, v in ours.state_dict().items()})
    return ours, theirs


def of(which):
    """Return a net, its twin, and images for both."""
    if which == "plain":
        ours, theirs = plain_twins()
    else:
        from attribution_twins import Dense, Shuffle

        _, dense, shuffle = nets()
        ours, theirs = (dense, Dense(dense)) if which == "dense" else (shuffle, Shuffle(shuffle))
    x = np.abs(np.random.default_rng(0).standard_normal((2, 3, 8, 8)))
    return ours, theirs, convcore.tensor(x), torch.tensor(x)


@pytest.fixture(scope="module")
def twins():
    return of("plain")


@pytest.fixture(scope="module", params=["plain", "dense", "shuffle"])
def each_twins(request):
    return of(request.param)


def test_twins_compute_the_same(each_twins):
    ours, net, x, y = each_twins
    check(ours(x).detach(), net(y), rtol=1e-9)


def check(found, expected, rtol=1e-6):
    np.testing.assert_allclose(found.numpy(), expected.detach().numpy(), rtol=rtol, atol=1e-10)


@pytest.fixture(scope="module")
def captum():
    return pytest.importorskip("captum.attr")


@pytest.mark.parametrize(
    ("name", "theirs"),
    [
        ("saliency", "Saliency"),
        ("input_x_gradient", "InputXGradient"),
        ("guided_backprop", "GuidedBackprop"),
        ("deconvolution", "Deconvolution"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_gradients_as_captum(captum, each_twins, name, theirs):
    ours, net, x, y = each_twins
    expected = getattr(captum, theirs)(net).attribute(y.clone().requires_grad_(), target=1)
    check(getattr(attribution, name)(ours, x, 1), expected)


@pytest.mark.filterwarnings("ignore")
def test_deep_lift_as_captum(captum, twins):
    ours, net, x, y = twins
    # Captum's contributions of a max pool do not add up.
    ours = convcore.nn.Sequential(*ours[:2], convcore.nn.AvgPool2d(2), *ours[3:])
    net = torch.nn.Sequential(*net[:2], torch.nn.AvgPool2d(2), *net[3:])
    expected = captum.DeepLift(net).attribute(y, baselines=y.flip(0) * 0.3, target=2)
    check(attribution.deep_lift(ours, x, 2, baseline=x.flip(0) * 0.3), expected)


@pytest.mark.filterwarnings("ignore")
def test_deep_lift_of_modules_called_again_as_captum(captum):
    ours, net, x, y = of("shuffle")
    expected = captum.DeepLift(net).attribute(y, baselines=y.flip(0) * 0.3, target=2)
    check(attribution.deep_lift(ours, x, 2, baseline=x.flip(0) * 0.3), expected)


def test_integrated_gradients_as_captum(captum, each_twins):
    ours, net, x, y = each_twins
    method = captum.IntegratedGradients(net)
    expected = method.attribute(y, target=1, n_steps=3000, method="riemann_middle").numpy()
    found = attribution.integrated_gradients(ours, x, 1, n_steps=500).numpy()
    assert np.abs(found - expected).max() < 1e-3 * np.abs(expected).max()


def test_occlusion_as_captum(captum, each_twins):
    ours, net, x, y = each_twins
    expected = captum.Occlusion(net).attribute(y, (3, 2, 2), strides=(3, 2, 2), target=0)
    check(attribution.occlusion(ours, x, 0, window=2), expected)


@pytest.mark.parametrize("rule", ["epsilon", "gamma"])
@pytest.mark.filterwarnings("ignore")
def test_lrp_as_captum(captum, twins, rule):
    from captum.attr._utils import lrp_rules

    ours, net, x, y = twins
    ours, net = copy.deepcopy(ours), copy.deepcopy(net)
    for module in [*ours, *net] if rule == "gamma" else ():
        if getattr(module, "bias", None) is not None:
            module.bias.data.zero_()  # which captum's gamma rule leaves as it is
    for module in net:
        if isinstance(module, torch.nn.Flatten | torch.nn.Linear | torch.nn.Conv2d):
            gamma = rule == "gamma" and isinstance(module, torch.nn.Conv2d)
            module.rule = lrp_rules.GammaRule(0.25) if gamma else lrp_rules.EpsilonRule(1e-6)
    expected = captum.LRP(net).attribute(y, target=1)
    first = attribution.Gamma() if rule == "gamma" else attribution.Epsilon()
    check(attribution.lrp(ours, x, 1, rules={"convolution": first}), expected, rtol=1e-4)


@pytest.mark.parametrize(
    ("name", "theirs"),
    [("grad_cam", "GradCAM"), ("grad_cam_plus_plus", "GradCAMPlusPlus"), ("layer_cam", "LayerCAM")],
)
@pytest.mark.filterwarnings("ignore")
def test_maps_as_pytorch_grad_cam(twins, name, theirs):
    import_torchvision()
    theirs_of = pytest.importorskip("pytorch_grad_cam", exc_type=ImportError)
    from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget

    ours, net, x, y = twins
    ours, net = copy.deepcopy(ours), copy.deepcopy(net)
    for module in (ours[-1], net[-1]):  # theirs adds 1e-6 to the size of gradients
        module.weight.data *= 1e4
    with getattr(theirs_of, theirs)(model=net, target_layers=[net[4]]) as method:
        expected = method(input_tensor=y, targets=[ClassifierOutputTarget(1)] * 2)
    found = getattr(attribution, name)(ours, x, "4", 1, upsample=False).numpy()[:, 0]
    found = np.stack([_as_theirs(image, expected.shape[1:]) for image in found])
    np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.filterwarnings("ignore")
def test_a_map_of_a_second_call_as_captum(captum):
    ours, net, x, y = of("shuffle")
    method = captum.LayerGradCam(net, net.rights[1][2])
    expected = method.attribute(y, target=1, relu_attributions=True)
    check(attribution.grad_cam(ours, x, "depth", 1, call=1, upsample=False), expected)


@pytest.fixture
def zennit():
    import_torchvision()
    return pytest.importorskip("zennit")


@pytest.mark.parametrize("which", ["plain", "shuffle"])
@pytest.mark.parametrize("composite", ["epsilon", "epsilon_plus", "epsilon_gamma"])
def test_composites_as_zennit(zennit, which, composite):
    from zennit import attribution as theirs
    from zennit import canonizers, composites, rules, types

    ours, net, x, y = of(which)
    rule = {
        "epsilon": rules.Epsilon(1e-6),
        "epsilon_plus": rules.ZPlus(1e-14),  # ours add nothing to their sums
        "epsilon_gamma": rules.Gamma(0.25, 1e-14),
    }
    layers = [
        *composites.layer_map_base(1e-6),
        (types.Convolution, rule[composite]),
        (torch.nn.Linear, rules.Epsilon(epsilon=1e-6)),
    ]
    merged = [canonizers.SequentialMergeBatchNorm()]
    of_layers = composites.LayerMapComposite(layer_map=layers, canonizers=merged)
    with theirs.Gradient(model=net, composite=of_layers) as method:
        _, expected = method(y, lambda scores: torch.eye(scores.shape[1])[[1, 1]] * scores)
    check(attribution.lrp(ours, x, 1, rules=composite), expected, rtol=1e-5)


def test_smooth_grad_as_zennit(zennit, each_twins):
    """The noise is PyTorch's, number by number; theirs has none in its last sample."""
    from zennit import attribution as theirs

    ours, net, x, y = each_twins
    target = torch.eye(net(y).shape[1], dtype=torch.float64)[[1, 1]]
    torch.manual_seed(5)
    _, found = theirs.SmoothGrad(model=net, noise_level=0.15, n_iter=5)(y, target)
    _, plain = theirs.Gradient(model=net)(y, target)
    generator = convcore.Generator().manual_seed(5)
    mean = attribution.smooth_grad(ours, x, 1, n_samples=4, noise=0.15, generator=generator)
    check(mean, (5 * found - plain) / 4)


def _as_theirs(image, size):
    """Return a map from 0 to 1, and resized as theirs."""
    import cv2

    scaled = (image - image.min()) / (1e-7 + image.max() - image.min())
    return cv2.resize(np.float32(scaled), size[::-1])
