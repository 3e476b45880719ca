"""find_nan: the call, the line and the inputs of the first NaN or infinity."""

import copy
import inspect
import threading
import warnings

import pytest

import convcore
from convcore import inspection, models, nn
from convcore.autograd.anomaly_mode import anomaly
from convcore.nn import functional as F


class Root(nn.Module):
    """NaN for negative inputs; an infinite gradient at zero."""

    def forward(self, x):
        return (x * 1).sqrt()


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    assert not anomaly.enabled


LINE = f"{__file__}:{inspect.getsourcelines(Root.forward)[1] + 1}"


def test_forward_names_module_function_line_and_range():
    net = nn.Sequential(nn.Identity(), Root())
    with (
        pytest.raises(inspection.NonFiniteError, match=r"1.sqrt made NaN") as found,
        inspection.find_nan(net),
    ):
        net(convcore.tensor([-4.0, 9.0]))
    error = found.value
    assert (error.module, error.operation, error.backward) == ("1", "sqrt", False)
    assert error.line == LINE and "return (x * 1).sqrt()" in str(error)
    assert "input 0: float32 2: -4 to 9" in str(error)


def test_nan_of_bfloat16_is_found():
    pytest.importorskip("ml_dtypes")
    x = convcore.tensor([-4.0, 9.0], dtype=convcore.bfloat16)
    with pytest.raises(inspection.NonFiniteError, match=r"sqrt made NaN"), inspection.find_nan():
        Root()(x)


def test_backward_names_the_forward_call():
    net = nn.Sequential(nn.Identity(), Root())
    x = convcore.tensor([0.0, 9.0], requires_grad=True)
    with (
        pytest.raises(inspection.NonFiniteError, match="made an infinity in its gradient") as found,
        inspection.find_nan(net),
    ):
        net(x).sum().backward()
    error = found.value
    assert (error.module, error.operation, error.backward) == ("1", "sqrt", True)
    assert error.line == LINE and "gradient 0: float32 2: 1 to 1" in str(error)
    with inspection.find_nan(net, inf=False):
        net(x).sum().backward()


def test_what_was_there_before_is_named():
    net = nn.Sequential(nn.Linear(2, 2))
    with (
        pytest.raises(inspection.NonFiniteError, match="one of its inputs has it already"),
        inspection.find_nan(net),
    ):
        net(convcore.tensor([[float("nan"), 1]]))
    with convcore.no_grad():
        net[0].weight[0, 1] = float("nan")
    with (
        pytest.raises(inspection.NonFiniteError, match=r"its parameter 0.weight has it already"),
        inspection.find_nan(net),
    ):
        net(convcore.ones(1, 2))


def test_a_buffer_is_named_where_it_stands_among_the_inputs():
    net = nn.Sequential(nn.BatchNorm1d(2)).eval()
    net[0].running_var[1] = float("nan")
    with pytest.raises(inspection.NonFiniteError) as caught, inspection.find_nan(net):
        net(convcore.ones(3, 2))
    assert "its buffer 0.running_var has it already" in str(caught.value)
    assert "input 2, 0.running_var: float32 2: 1 to 1, 1 NaN" in str(caught.value)


def test_an_infinite_parameter_is_named_and_a_mask_is_not():
    class Masked(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 2)
            self.register_buffer("mask", convcore.tensor([0.0, -float("inf")]))

        def forward(self, x):
            return (self.layer(x) + self.mask).softmax(-1)

    net = Masked()
    with inspection.find_nan(net):
        net(convcore.ones(1, 2))
    with convcore.no_grad():
        net.layer.weight[0, 1] = float("inf")
    with (
        pytest.raises(inspection.NonFiniteError, match=r"layer.linear gets an infinity: its param"),
        inspection.find_nan(net),
    ):
        net(convcore.ones(1, 2))


def test_a_loss_outside_the_net_is_seen():
    with (
        pytest.raises(inspection.NonFiniteError, match=r"^log made an infinity"),
        inspection.find_nan(),
    ):
        convcore.log(convcore.zeros(2))
    with (
        pytest.raises(inspection.NonFiniteError, match="gets a gradient with NaN"),
        inspection.find_nan(),
    ):
        (convcore.ones(2, requires_grad=True) * 2).backward(convcore.tensor([float("nan"), 1]))


def test_given_infinities_are_no_fault():
    scores = convcore.randn(2, 3, requires_grad=True)
    mask = convcore.tensor([[True, False, False]])
    with inspection.find_nan():
        F.softmax(scores.masked_fill(mask, float("-inf")), 1).sum().backward()
        F.softmax(scores.masked_fill(mask, value=float("-inf")), 1).sum().backward()
        convcore.full((2,), float("inf")).clamp(max=1)
        convcore.empty(10).fill_(1)
    with pytest.raises(inspection.NonFiniteError, match="sub made NaN"), inspection.find_nan():
        infinite = convcore.full((2,), float("inf"))
        infinite - infinite


def test_sound_nets_pass_and_nothing_stays():
    net = models.resnet8()
    channels = next(net.parameters()).shape[1]
    with inspection.find_nan(net):
        net(convcore.randn(2, channels, 8, 8)).square().sum().backward()
    assert not any(module._forward_hooks for module in net.modules())
    with pytest.raises(TypeError, match="model must be a Module or None"):
        inspection.find_nan(3)


def test_custom_functions_are_seen_by_anomaly_detection():
    class Wrong(convcore.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            return grad * float("nan")

    with pytest.raises((RuntimeError, FloatingPointError), match=r"(?i)nan"), inspection.find_nan():
        Wrong.apply(convcore.ones(2, requires_grad=True)).sum().backward()


def test_layers_of_optimized_nets_are_named():
    net = models.resnet8().eval()
    x = convcore.randn(1, next(net.parameters()).shape[1], 8, 8)
    planned = convcore.inference.optimize_for_inference(net)
    with convcore.no_grad():
        planned(x)
        x[0, 0, 3, 3] = float("inf")
        with pytest.raises(inspection.NonFiniteError) as raised, inspection.find_nan(planned):
            planned(x)
    error = raised.value
    assert (error.module, error.operation) == ("model.layer1.0.conv1", "PrepackedConv")
    assert "made NaN" in str(error) and "infinite" in str(error)


def test_other_threads_do_not_change_what_is_named():
    net, x, go_on = nn.Sequential(nn.ReLU(), nn.Linear(2, 2)), convcore.ones(1, 2), [True]

    def others():
        while go_on:
            net(x)

    thread = threading.Thread(target=others)
    with inspection.find_nan(net):
        thread.start()
        try:
            for _ in range(100):
                with pytest.raises(inspection.NonFiniteError) as raised:
                    net(convcore.full((1, 2), float("nan")))
                assert raised.value.module == "0" and raised.value.operation == "relu"
        finally:
            go_on.clear()
            thread.join()


def test_one_block_is_not_opened_twice():
    net = nn.Sequential(nn.Linear(2, 2))
    with inspection.find_nan(net) as block:
        with pytest.raises(RuntimeError, match="open already"), block:
            pass
        copy.deepcopy(net)(convcore.ones(1, 2))
    assert not net[0]._forward_hooks
    with block:  # once more, after it
        net(convcore.ones(1, 2))


def test_an_error_that_says_the_line_is_not_said_twice():
    x = convcore.zeros(1, requires_grad=True)
    with (
        warnings.catch_warnings(),
        pytest.raises(inspection.NonFiniteError, match="SqrtBackward0"),
        inspection.find_nan(),
    ):
        warnings.simplefilter("error")
        x.sqrt().sum().backward()
