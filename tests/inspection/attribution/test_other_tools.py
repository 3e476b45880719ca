"""Attribution against captum's and pytorch-grad-cam's figures on the same net in PyTorch.

The net has a module for each ReLU, none in place: that is where theirs are right.
"""

import copy
import importlib.util
from pathlib import Path

import numpy as np
import pytest

import convcore
from convcore.inspection import attribution

torch = pytest.importorskip("torch")


def built_of(nn):
    return nn.Sequential(
        nn.Conv2d(3, 6, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 8, 3), nn.ReLU(),
        nn.AvgPool2d(2), nn.Flatten(), nn.Linear(8, 5), nn.ReLU(), nn.Linear(5, 3),
    )  # fmt: skip


@pytest.fixture(scope="module")
def twins():
    convcore.manual_seed(0)
    ours, theirs = built_of(convcore.nn).double(), built_of(torch.nn).double()
    theirs.load_state_dict({k: torch.tensor(v.numpy()) for k, v in ours.state_dict().items()})
    x = np.abs(np.random.default_rng(0).standard_normal((2, 3, 8, 8)))
    return ours, theirs, convcore.tensor(x), torch.tensor(x)


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
def test_gradients_as_captum(captum, twins, name, theirs):
    ours, net, x, y = twins
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


def test_integrated_gradients_as_captum(captum, twins):
    ours, net, x, y = twins
    method = captum.IntegratedGradients(net)
    expected = method.attribute(y, target=1, n_steps=3000, method="riemann_middle").numpy()
    found = attribution.integrated_gradients(ours, x, 1, n_steps=500).numpy()
    assert np.abs(found - expected).max() < 1e-3 * np.abs(expected).max()


def test_occlusion_as_captum(captum, twins):
    ours, net, x, y = twins
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
def test_maps_as_pytorch_grad_cam(twins, name, theirs, monkeypatch):
    if importlib.util.find_spec("torchvision") is None:  # of which nothing is used here
        monkeypatch.syspath_prepend(Path(__file__).parents[2] / "helpers" / "stand_ins")
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


def _as_theirs(image, size):
    """Return a map from 0 to 1, and resized as theirs."""
    import cv2

    scaled = (image - image.min()) / (1e-7 + image.max() - image.min())
    return cv2.resize(np.float32(scaled), size[::-1])
