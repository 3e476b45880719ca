"""Completeness: attributions sum to the score, or to what it gained over a baseline."""

import pytest
from attribution_nets import nets

import convcore
from convcore import nn
from convcore.inspection import attribution
from convcore.nn import functional as F

NAMES = ("resnet", "dense", "shuffle")


def images(n=2, size=8):
    return convcore.randn(
        n, 3, size, size, dtype=convcore.float64, generator=convcore.Generator().manual_seed(1)
    )


def gained(net, x, baseline, target):
    with convcore.no_grad():
        return (net(x) - net(baseline))[:, target]


def sums(found):
    return found.flatten(1).sum(1)


@pytest.mark.parametrize("which", range(3), ids=NAMES)
def test_integrated_gradients_are_complete(which):
    net, x = nets()[which], images()
    found, delta = attribution.integrated_gradients(
        net, x, 1, tolerance=1e-6, return_convergence_delta=True
    )
    expected = gained(net, x, x * 0, 1)
    assert (delta.abs() < 1e-5 * expected.abs()).all()
    assert convcore.allclose(sums(found) - expected, delta, atol=1e-12)


@pytest.mark.parametrize("dtype", [convcore.float16, convcore.float32, convcore.float64])
@pytest.mark.parametrize("net", [nn.Hardshrink(0.3), nn.Threshold(0.3, 0.0)])
def test_a_jump_of_the_score_is_what_integrated_gradients_miss(net, dtype):
    x = convcore.tensor([[1.0, 0.2]], dtype=dtype)
    found, delta = attribution.integrated_gradients(net, x, 0, return_convergence_delta=True)
    tolerance = {"rtol": 2e-3, "atol": convcore.finfo(dtype).eps}  # a difference of ones
    assert convcore.allclose(found, convcore.tensor([[0.7, 0.0]], dtype=dtype), **tolerance)
    assert convcore.allclose(delta, convcore.tensor([-0.3], dtype=dtype), **tolerance)


@pytest.mark.parametrize("which", range(3), ids=NAMES)
def test_deep_lift_is_complete(which):
    net, x = nets()[which], images()
    begin = images().flip(0) * 0.5
    found, delta = attribution.deep_lift(net, x, 1, baseline=begin, return_convergence_delta=True)
    expected = gained(net, x, begin, 1)
    assert (delta.abs() < 1e-9 * expected.abs()).all()
    assert convcore.allclose(sums(found), expected, rtol=1e-9)


@pytest.mark.parametrize("which", range(3), ids=NAMES)
def test_lrp_conserves_relevance(which):
    net, x = nets(centred=True)[which], images()
    found, delta = attribution.lrp(
        net, x, 1, rules=attribution.Epsilon(0.0), return_convergence_delta=True
    )
    score = net(x)[:, 1].detach()
    assert (delta.abs() < 1e-6 * score.abs()).all()
    assert convcore.allclose(sums(found), score, rtol=1e-6)


@pytest.mark.parametrize("rule", [attribution.Gamma(0.3), attribution.ZPlus()], ids=["gamma", "z+"])
def test_lrp_rules_conserve_relevance(rule):
    convcore.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(3, 6, 3, bias=False), nn.ReLU(), nn.MaxPool2d(2),
        nn.ConvTranspose2d(6, 4, 2, stride=2, bias=False), nn.ReLU(), nn.AvgPool2d(3),
        nn.Flatten(), nn.Linear(16, 4, bias=False),
    ).double()  # fmt: skip
    rules = {"convolution": rule, "linear": attribution.Epsilon(0.0)}
    found = attribution.lrp(net, images(), 1, rules=rules)
    assert convcore.allclose(sums(found), net(images())[:, 1].detach(), rtol=1e-6)


def test_products_of_two_results_are_complete():
    class Gate(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.gate = nn.Conv2d(3, 4, 3), nn.Linear(4, 4)

        def forward(self, x):
            y = F.gelu(self.conv(x))
            weights = convcore.sigmoid(self.gate(y.mean((2, 3))))
            return (y * weights[:, :, None, None]).sum((2, 3))

    convcore.manual_seed(0)
    net, x = Gate().double(), images()
    _, delta = attribution.deep_lift(net, x, 2, return_convergence_delta=True)
    assert (delta.abs() < 1e-9).all()


def test_deep_lift_of_maxima_that_move():
    net = nn.Sequential(nn.MaxPool2d(2, stride=1), nn.Flatten(), nn.Linear(49 * 3, 2)).double()
    x, begin = images(), images().flip(0)
    _, delta = attribution.deep_lift(net, x, 0, baseline=begin, return_convergence_delta=True)
    assert (delta.abs() < 1e-12).all()


def test_a_softmax_at_the_end_is_left_out():
    net = nn.Sequential(nn.Flatten(), nn.Linear(192, 3), nn.Softmax(1)).double()
    for method in (attribution.deep_lift, attribution.lrp):
        assert convcore.equal(method(net, images(), 1), method(net[:2], images(), 1))


def test_batch_norm_counts_as_part_of_the_convolution_before_it():
    convcore.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(),
                        nn.Linear(144, 3)).double().eval()  # fmt: skip
    net[1].running_mean.normal_()
    net[1].weight.data.uniform_(-1, 2)
    joined = nn.utils.fusion.fuse_conv_bn_eval(net[0], net[1])
    for rules in ("epsilon", "epsilon_gamma", "epsilon_plus"):
        expected = attribution.lrp(nn.Sequential(joined, *net[2:]), images(), 1, rules=rules)
        assert convcore.allclose(attribution.lrp(net, images(), 1, rules=rules), expected)


def test_gamma_grows_from_epsilon_to_z_plus():
    convcore.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 6, 3), nn.ReLU(), nn.Flatten(), nn.Linear(216, 3)).double()

    def by(rule):
        rules = {"convolution": rule, "linear": attribution.Epsilon(0.0)}
        return attribution.lrp(net, images(), 1, rules=rules)

    assert convcore.allclose(by(attribution.Gamma(0.0)), by(attribution.Epsilon(0.0)))
    assert convcore.allclose(by(attribution.Gamma(1e12)), by(attribution.ZPlus()), atol=1e-9)


def test_lrp_of_sequences_and_volumes():
    class Rows(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.outer = nn.Linear(5, 6, bias=False), nn.Linear(6, 2, bias=False)

        def forward(self, x):  # a linear layer of more than two axes
            return self.outer(F.relu(self.inner(x))).sum(1)

    convcore.manual_seed(0)
    volume = nn.Sequential(
        nn.Conv3d(1, 2, 2, bias=False), nn.ReLU(), nn.Flatten(), nn.Linear(16, 2, bias=False)
    )
    for net, shape in ((Rows(), (2, 4, 5)), (volume, (2, 1, 3, 3, 3))):
        x = convcore.rand(shape, dtype=convcore.float64)
        for rule in (attribution.Epsilon(0.0), attribution.Gamma(0.5)):
            rules = {"convolution": rule, "linear": attribution.Epsilon(0.0)}
            found = attribution.lrp(net.double(), x, 1, rules=rules)
            assert convcore.allclose(sums(found), net(x)[:, 1].detach(), rtol=1e-6)


def test_the_first_layers_may_have_a_rule_of_their_own():
    convcore.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3), nn.ReLU(), nn.Flatten(),
        nn.Linear(64, 3),
    ).double()  # fmt: skip
    with_rule = attribution.lrp(net, images(), 1, rules={"first": attribution.ZPlus()})
    relevance = attribution.lrp(net[1:], net[0](images()).detach(), 1)
    # z+ of the first convolution, by its definition.
    weight, bias = net[0].weight.detach(), net[0].bias.detach()[:, None, None]
    up, down = images().clamp(min=0), images().clamp(max=0)
    z = F.conv2d(up, weight.clamp(min=0)) + F.conv2d(down, weight.clamp(max=0)) + bias.clamp(min=0)
    expected = up * F.conv_transpose2d(relevance / z, weight.clamp(min=0))
    expected += down * F.conv_transpose2d(relevance / z, weight.clamp(max=0))
    assert convcore.allclose(with_rule, expected)
