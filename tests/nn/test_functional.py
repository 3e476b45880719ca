"""nn.functional: PyTorch's names and signatures, and the twins of the layers."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import convcore
from convcore import nn
from convcore.nn import functional as F

NEEDED = [
    *("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"),
    *("linear", "unfold", "fold", "pad", "relu", "relu_", "leaky_relu", "sigmoid", "tanh"),
    *("softmax", "log_softmax", "gelu", "elu", "silu", "hardtanh", "softplus", "max_pool1d"),
    *("max_pool2d", "max_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool3d", "adaptive_avg_pool1d"),
    *("adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool2d", "dropout", "dropout2d"),
    *("pixel_shuffle", "pixel_unshuffle", "cross_entropy", "nll_loss", "mse_loss", "l1_loss"),
    *("smooth_l1_loss", "binary_cross_entropy", "batch_norm", "group_norm", "instance_norm"),
    "layer_norm",
]
# What PyTorch has no function for.
OWN = {"batch_norm_activation", "conv_activation"}


def test_functional_has_the_functions_of_the_layers():
    assert not [name for name in NEEDED if not callable(getattr(F, name, None))]
    assert set(NEEDED) <= set(F.__all__)


def test_functional_has_only_names_of_pytorch(torch):
    assert {name for name in F.__all__ if not hasattr(torch.nn.functional, name)} == OWN


@pytest.mark.parametrize("name", sorted({*F.__all__} - OWN))
def test_function_has_pytorchs_arguments(torch, name):
    try:
        theirs = list(inspect.signature(getattr(torch.nn.functional, name)).parameters)
    except ValueError:
        pytest.skip("PyTorch's is compiled and does not tell")
    if theirs == ["args", "kwargs"]:  # a max pool: with indices or without
        signature = inspect.signature(getattr(torch.nn.functional, f"{name}_with_indices"))
        theirs = list(signature.parameters)
    ours = list(inspect.signature(getattr(F, name)).parameters)
    if "out" not in ours:  # few take it, as in nets nobody gives it
        theirs = [argument for argument in theirs if argument != "out"]
    assert ours == theirs


def image(*shape):
    return convcore.randn(*shape or (2, 4, 6, 6), dtype=convcore.float64)


# (the layer, the call that does the same with it, the input's shape)
TWINS = {
    "conv1d": (
        nn.Conv1d(4, 2, 3, padding="same"),
        lambda m, x: F.conv1d(x, m.weight, m.bias, padding="same"),
        (2, 4, 6),
    ),
    "conv2d": (
        nn.Conv2d(4, 2, 3, 2, 1, 2, 2),
        lambda m, x: F.conv2d(x, m.weight, m.bias, stride=2, padding=1, dilation=2, groups=2),
        (),
    ),
    "conv2d circular": (
        nn.Conv2d(4, 2, 3, padding=(1, 2), padding_mode="circular"),
        lambda m, x: F.conv2d(F.pad(x, (2, 2, 1, 1), mode="circular"), m.weight, m.bias),
        (),
    ),
    "conv2d reflect same": (
        nn.Conv2d(4, 2, (2, 3), padding="same", padding_mode="reflect"),
        lambda m, x: F.conv2d(F.pad(x, (1, 1, 0, 1), mode="reflect"), m.weight, m.bias),
        (),
    ),
    "conv3d": (nn.Conv3d(4, 2, 2), lambda m, x: F.conv3d(x, m.weight, m.bias), (1, 4, 3, 3, 3)),
    "conv_transpose2d": (
        nn.ConvTranspose2d(4, 2, 3, 2, 1, 1),
        lambda m, x: F.conv_transpose2d(x, m.weight, m.bias, 2, 1, 1),
        (),
    ),
    "linear": (nn.Linear(6, 3), lambda m, x: F.linear(x, m.weight, m.bias), ()),
    "relu": (nn.ReLU(), lambda m, x: F.relu(x), ()),
    "leaky_relu": (nn.LeakyReLU(0.2), lambda m, x: F.leaky_relu(x, 0.2), ()),
    "sigmoid": (nn.Sigmoid(), lambda m, x: F.sigmoid(x), ()),
    "tanh": (nn.Tanh(), lambda m, x: F.tanh(x), ()),
    "softmax": (nn.Softmax(1), lambda m, x: F.softmax(x, dim=1), ()),
    "log_softmax": (nn.LogSoftmax(1), lambda m, x: F.log_softmax(x, 1), ()),
    "gelu": (nn.GELU("tanh"), lambda m, x: F.gelu(x, approximate="tanh"), ()),
    "max_pool2d": (nn.MaxPool2d(2, 1), lambda m, x: F.max_pool2d(x, 2, stride=1), ()),
    "avg_pool2d": (nn.AvgPool2d(2), lambda m, x: F.avg_pool2d(x, 2), ()),
    "adaptive_avg_pool2d": (nn.AdaptiveAvgPool2d(1), lambda m, x: F.adaptive_avg_pool2d(x, 1), ()),
    "pad": (nn.ZeroPad2d((1, 0, 2, 0)), lambda m, x: F.pad(x, (1, 0, 2, 0)), ()),
    "unfold": (nn.Unfold(2), lambda m, x: F.unfold(x, 2), ()),
    "fold": (nn.Fold(3, 2), lambda m, x: F.fold(x, (3, 3), (2, 2)), (2, 8, 4)),
    "pixel_shuffle": (nn.PixelShuffle(2), lambda m, x: F.pixel_shuffle(x, 2), ()),
    "dropout": (nn.Dropout().eval(), lambda m, x: F.dropout(x, training=False), ()),
}


@pytest.mark.parametrize("name", TWINS)
def test_layer_does_what_its_function_does(name, seed):
    module, function, shape = TWINS[name]
    convcore.manual_seed(seed)
    module, x = module.double(), image(*shape)
    one, other = module(x), function(module, x)
    assert type(one.grad_fn) is type(other.grad_fn)
    assert np.array_equal(one.detach().numpy(), other.detach().numpy())


def test_dropout_drops_by_default_in_training():
    convcore.manual_seed(0)
    assert 0 in F.dropout(convcore.ones(50)).tolist()
    assert 0 not in F.dropout(convcore.ones(50), 0.5, False).tolist()


def test_a_small_net_of_functions_learns(seed):
    convcore.manual_seed(seed)
    x = convcore.randn(40, 1, 6, 6)
    target = (x[:, 0, 2, 2] > 0).long()
    conv, head = nn.Conv2d(1, 4, 3), nn.Linear(16, 2)
    optimizer = convcore.optim.SGD([*conv.parameters(), *head.parameters()], 0.1, momentum=0.9)
    losses = []
    for _ in range(150):
        optimizer.zero_grad()
        hidden = F.max_pool2d(F.relu(conv(x)), 2).flatten(1)
        loss = F.cross_entropy(head(hidden), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]
