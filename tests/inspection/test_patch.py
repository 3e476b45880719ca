"""patch: activations and gradients changed by name, and restored."""

import pytest

import convcore
from convcore import inspection, models, nn
from convcore.nn import functional as F


class Net(nn.Module):
    """Two linear layers, a function between them."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.second = nn.Sequential(nn.Linear(4, 2))

    def forward(self, x):
        return self.second(F.relu(self.first(x)))

    def by_hand(self, x, hidden=lambda h: h, relu=lambda h: h):
        return self.second(relu(F.relu(hidden(self.first(x)))))


@pytest.fixture(name="net")
def _net():
    return Net()


def test_activations_are_replaced_scaled_and_ablated(net):
    x, given = convcore.randn(2, 3), convcore.randn(1, 4)
    cases = {
        "first": (inspection.scale(2), net.by_hand(x, hidden=lambda h: h * 2)),
        "relu": (inspection.zero, net.by_hand(x, relu=lambda h: h * 0)),
        "f*": (given, net.by_hand(x, hidden=lambda h: given.expand(2, 4))),
    }
    for name, (action, expected) in cases.items():
        with inspection.patch(net, {name: action}):
            assert net(x).equal(expected)
        assert net(x).equal(net.by_hand(x))


def test_a_module_stands_for_its_calls(net):
    x = convcore.rand(2, 3)
    with inspection.patch(net, {net.first: inspection.zero}):
        found = net(x)
    assert found.equal(net.by_hand(x, hidden=lambda h: h * 0))


def test_noise_has_its_deviation_and_its_generator(net):
    x = convcore.zeros(500, 3)
    generator = convcore.Generator()
    generator.manual_seed(3)
    with (
        inspection.patch(net, {"first": inspection.noise(0.5, generator)}),
        inspection.capture(net, "first") as found,
    ):
        net(x)
    rest = found["first"] - net.first.bias.detach()
    assert float(rest.std()) == pytest.approx(0.5, rel=0.1)
    generator.manual_seed(3)
    assert rest.allclose(0.5 * convcore.randn(500, 4, generator=generator), atol=1e-6)


def test_gradients_are_changed(net):
    x = convcore.randn(2, 3, requires_grad=True)
    net(x).sum().backward()
    plain, x.grad = x.grad, None
    with inspection.patch(net, grads={"relu": inspection.scale(3), nn.Sequential: lambda g: g * 2}):
        net(x).sum().backward()
    assert x.grad.allclose(plain * 6)


def test_what_modules_pass_on_is_changed_once(net):
    x = convcore.randn(2, 3, requires_grad=True)
    expected = net(x) * 2
    with inspection.patch(
        net, {"second*": inspection.scale(2)}, grads={"second*": inspection.zero}
    ):
        result = net(x)
        result.sum().backward()
    assert result.equal(expected) and not x.grad.any()


def test_a_net_stops_at_a_layer():
    net = models.resnet18().eval()
    x = convcore.randn(1, 3, 32, 32)
    with inspection.patch(net, {"layer2": inspection.stop}) as found:
        net(x)
        pytest.fail("the block goes on")
    with inspection.capture(net, "layer2") as expected:
        net(x)
    assert found.stopped.allclose(expected["layer2"], atol=1e-5)
    assert not any(module._forward_hooks for module in net.modules())


def test_bad_replacements_are_refused_and_nothing_stays(net):
    x = convcore.randn(2, 3)
    for action, text in [
        (convcore.zeros(3), r"first: a tensor of shape \[3\] cannot take the place of"),
        (lambda h: h[0], r"first: a function changed \[2, 4\] to \[4\]"),
        (lambda h: h.double(), "first: torch.float64 cannot take the place of torch.float32"),
        (lambda h: 3, "first: a function returned int"),
    ]:
        with (
            pytest.raises((TypeError, ValueError), match=text),
            inspection.patch(net, {"first": action}),
        ):
            net(x)
        assert not net.first._forward_hooks
    with (
        pytest.raises(TypeError, match="first: a function returned function") as caught,
        inspection.patch(net, {"first": inspection.scale}),
    ):
        net(x)
    assert "scale makes a function: call it first, as scale(0.5)" in str(caught.value)
    with pytest.raises(TypeError, match=r"outputs\['first'\] must be a function or a tensor"):
        inspection.patch(net, {"first": 3})
    with pytest.raises(TypeError, match="grads must be a mapping"):
        inspection.patch(net, grads=[inspection.zero])
    with (
        pytest.raises(
            ValueError, match="outputs: no layer or call has the name 'frist'; is 'first' meant"
        ),
        inspection.patch(net, {"frist": inspection.zero}),
    ):
        net(x)


def test_parts_of_nested_results_are_changed():
    net = nn.LSTM(2, 3)
    x = convcore.randn(4, 1, 2)
    y, (h, c) = net(x)
    with inspection.patch(net, {"output[1][0]": inspection.zero}):
        patched, (zeros, same) = net(x)
    assert patched.equal(y) and same.equal(c) and not zeros.any() and h.any()


def test_functions_in_place_are_patched_where_they_write():
    class Adds(nn.Module):
        def forward(self, x):
            y = x * 1
            y.add_(1)
            y += x
            return y

    x = convcore.ones(2, requires_grad=True)
    with inspection.patch(
        Adds(), {"add": inspection.scale(2), "add:2": inspection.scale(5)}
    ) as one:
        result = one._calls._model(x)
        result.sum().backward()
    # add is both calls, add:2 the second one: ((1 + 1) * 2 + 1) * 2 * 5
    assert result.tolist() == [50, 50] and x.grad.tolist() == [30, 30]


def test_ablation_removes_nan_too():
    x = convcore.tensor([float("nan"), 1.0], requires_grad=True)
    with inspection.patch(nn.ReLU(), {"output": inspection.zero}) as one:
        result = one._calls._model(x)
        result.sum().backward()
    assert result.tolist() == [0, 0]


def test_a_gradient_that_there_is_not_is_left_alone():
    class Halves(nn.Module):
        def forward(self, x):
            return (x * 2).split(2)[0]

    net, x = Halves(), convcore.ones(4, requires_grad=True)
    with inspection.patch(net, grads={"split*": inspection.scale(5)}):
        net(x).sum().backward()
    assert x.grad.tolist() == [10, 10, 0, 0]
