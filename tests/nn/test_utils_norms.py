"""Parametrized, normalized, orthogonal, pruned and fused weights: PyTorch's, from the same seed."""

from __future__ import annotations

import copy
import importlib
import pickle

import numpy as np
import pytest
from same_lines import check, check_error, state

import convcore
from convcore import nn


def module_of(library, name):
    return importlib.import_module(f"{library.__name__}.nn.utils.{name}")


def trained(library, module, shape=(4, 3), steps=2):
    """State, output and printed form after some steps of training."""
    rng = np.random.default_rng(0)
    x = library.from_numpy(rng.standard_normal(shape).astype("f4"))
    optimizer = library.optim.SGD(module.parameters(), lr=0.003)
    for _ in range(steps):
        optimizer.zero_grad()
        (module(x) ** 2).sum().backward()
        optimizer.step()
    return {**state(module), "output": module(x), "printed": repr(module)}


NORMS = {
    "old weight": lambda lib, m: lib.nn.utils.weight_norm(m),
    "old weight, whole": lambda lib, m: lib.nn.utils.weight_norm(m, dim=None),
    "old spectral": lambda lib, m: lib.nn.utils.spectral_norm(m),
    "old spectral, 3 iterations": lambda lib, m: lib.nn.utils.spectral_norm(m, "weight", 3, dim=1),
    "weight": lambda lib, m: lib.nn.utils.parametrizations.weight_norm(m),
    "weight, axis 1": lambda lib, m: lib.nn.utils.parametrizations.weight_norm(m, dim=1),
    "spectral": lambda lib, m: lib.nn.utils.parametrizations.spectral_norm(m),
}
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")


@pytest.mark.parametrize("norm", NORMS.values(), ids=NORMS)
@pytest.mark.parametrize("outputs", [2, 3, 5])
def test_normalized_linear_layers_train_as_pytorchs(torch, norm, outputs):
    check(torch, lambda lib: trained(lib, norm(lib, lib.nn.Linear(3, outputs))))


@pytest.mark.parametrize("norm", NORMS.values(), ids=NORMS)
@pytest.mark.parametrize("kind", ["Conv2d", "ConvTranspose2d"])
def test_normalized_convolutions_train_as_pytorchs(torch, norm, kind):
    def run(lib):
        return trained(lib, norm(lib, getattr(lib.nn, kind)(3, 2, 2)), (1, 3, 4, 4))

    check(torch, run)


def test_norms_are_what_they_are_called():
    layer = nn.utils.parametrizations.weight_norm(nn.Linear(3, 2))
    lengths = convcore.tensor([[2.0], [0.5]])
    layer.parametrizations.weight.original0.data = lengths
    np.testing.assert_allclose(
        np.linalg.norm(layer.weight.detach().numpy(), axis=1, keepdims=True), lengths, rtol=1e-6
    )
    spectral = nn.utils.parametrizations.spectral_norm(nn.Linear(4, 3), n_power_iterations=50)
    assert np.linalg.norm(spectral.weight.detach().numpy(), 2) == pytest.approx(1, rel=1e-4)


REMOVED = {
    "old weight": lambda lib, m: lib.nn.utils.remove_weight_norm(m),
    "old spectral": lambda lib, m: lib.nn.utils.remove_spectral_norm(m),
    "spectral": lambda lib, m: module_of(lib, "parametrize").remove_parametrizations(m, "weight"),
    "weight": lambda lib, m: module_of(lib, "parametrize").remove_parametrizations(m, "weight"),
}


@pytest.mark.parametrize("name", REMOVED)
def test_norms_can_be_removed(torch, name):
    def run(lib):
        layer = NORMS[name](lib, lib.nn.Linear(3, 2))
        before = trained(lib, layer)
        REMOVED[name](lib, layer)
        return [before, trained(lib, layer), type(layer).__name__]

    check(torch, run)


def test_state_of_the_old_weight_norm_loads_into_the_new(torch):
    def run(lib):
        old = lib.nn.utils.weight_norm(lib.nn.Linear(3, 2))
        new = lib.nn.utils.parametrizations.weight_norm(lib.nn.Linear(3, 2))
        new.load_state_dict(old.state_dict())
        version = lib.nn.utils.spectral_norm(lib.nn.Linear(3, 2)).state_dict()._metadata
        return [state(new), new.weight, dict(version)]

    check(torch, run)


def test_parametrizations_of_ones_own(torch):
    def run(lib):
        class Symmetric(lib.nn.Module):
            def forward(self, x):
                return x.triu() + x.triu(1).transpose(-1, -2)

            def right_inverse(self, x):
                return x.triu()

        class Difference(lib.nn.Module):
            def forward(self, a, b):
                return a - b

            def right_inverse(self, x):
                return x.clamp(min=0), -x.clamp(max=0)

        p, layer = module_of(lib, "parametrize"), lib.nn.Linear(3, 3)
        p.register_parametrization(layer, "weight", Symmetric())
        p.register_parametrization(layer, "weight", lib.nn.Tanh())
        p.register_parametrization(layer, "bias", Difference())
        out = [trained(lib, layer), trained(lib, copy.deepcopy(layer)), state(layer)]
        layer.bias = lib.ones(3)
        with p.cached():
            out.append(layer.weight is layer.weight)
        out += [layer.bias, layer.weight is layer.weight, p.is_parametrized(layer, "weight")]
        out += [p.is_parametrized(layer, "x"), p.type_before_parametrizations(layer).__name__]
        other = lib.nn.Linear(3, 3)
        p.transfer_parametrizations_and_params(layer, other)
        out += [state(other), other.weight]
        p.remove_parametrizations(layer, "bias")
        p.remove_parametrizations(layer, "weight")
        out += [trained(lib, layer), type(layer).__name__, p.is_parametrized(layer)]
        norm = lib.nn.BatchNorm1d(3)
        p.register_parametrization(norm, "running_mean", lib.nn.ReLU())
        return [*out, state(norm), norm.running_mean]

    check(torch, run)


@pytest.mark.parametrize(
    "inverse", [lambda x: (x, x), lambda x: x.double(), lambda x: x[:1], lambda x: None]
)
def test_inverse_of_a_further_parametrization_keeps_what_it_takes(torch, inverse):
    def run(lib):
        class Same(lib.nn.Module):
            def forward(self, x):
                return x

            def right_inverse(self, x):
                return inverse(x)

        p, layer = module_of(lib, "parametrize"), lib.nn.Linear(2, 2)
        p.register_parametrization(layer, "weight", lib.nn.Identity())
        p.register_parametrization(layer, "weight", Same())

    check_error(torch, run)


def test_a_complex_weight_is_divided_by_its_spectral_norm(lib):
    layer = lib.nn.Linear(2, 2, dtype=lib.complex64)
    layer.weight = lib.nn.Parameter(lib.diag(lib.tensor([3 + 4j, 1j])))
    lib.nn.utils.parametrizations.spectral_norm(layer, n_power_iterations=9)
    found = layer.weight.diagonal().tolist()
    assert found == pytest.approx([0.6 + 0.8j, 0.2j], abs=1e-5)


def test_refused_parametrization_changes_nothing():
    class Triangle(nn.Module):
        def forward(self, x):
            return x[:1]

        def right_inverse(self, x):
            return x.triu()

    layer = nn.Linear(2, 2)
    before = layer.weight.tolist()
    with pytest.raises(ValueError, match="may not change the shape"):
        nn.utils.parametrize.register_parametrization(layer, "weight", Triangle())
    assert type(layer) is nn.Linear
    assert layer.weight.tolist() == before


def conv(lib):
    return lib.nn.Conv2d(3, 4, 2)


PRUNED = {
    "random": lambda lib, m: module_of(lib, "prune").random_unstructured(m, "weight", 0.4),
    "random, number": lambda lib, m: module_of(lib, "prune").random_unstructured(m, "weight", 5),
    "l1": lambda lib, m: module_of(lib, "prune").l1_unstructured(m, "weight", 0.4),
    "random channels": lambda lib, m: module_of(lib, "prune").random_structured(
        m, "weight", 0.5, 0
    ),
    "l2 channels": lambda lib, m: module_of(lib, "prune").ln_structured(m, "weight", 0.5, 2, 0),
    "inf channels": lambda lib, m: module_of(lib, "prune").ln_structured(
        m, "weight", 0.3, float("inf"), -1
    ),
    "identity": lambda lib, m: module_of(lib, "prune").identity(m, "weight"),
    "mask": lambda lib, m: module_of(lib, "prune").custom_from_mask(
        m, "bias", lib.tensor([0, 1, 0, 1])
    ),
    "scores": lambda lib, m: module_of(lib, "prune").l1_unstructured(
        m, "bias", 0.5, importance_scores=lib.tensor([4.0, 3.0, 2.0, 1.0])
    ),
}


@pytest.mark.parametrize("prune", PRUNED.values(), ids=PRUNED)
def test_pruned_layers_train_as_pytorchs(torch, prune):
    def run(lib):
        layer = conv(lib)
        prune(lib, layer)
        return [trained(lib, layer, (1, 3, 4, 4)), module_of(lib, "prune").is_pruned(layer)]

    check(torch, run)


def test_pruning_again_prunes_more_and_can_be_removed(torch):
    def run(lib):
        layer, p = conv(lib), module_of(lib, "prune")
        p.l1_unstructured(layer, "weight", 0.3)
        p.ln_structured(layer, "weight", 0.5, 2, 0)
        p.random_unstructured(layer, "weight", 0.2)
        p.random_structured(layer, "weight", 1, 0)
        out = [trained(lib, layer, (1, 3, 4, 4))]
        (hook,) = layer._forward_pre_hooks.values()
        out += [len(hook), type(hook).__name__]
        p.remove(layer, "weight")
        return [*out, state(layer), p.is_pruned(layer), sorted(dict(layer.named_parameters()))]

    check(torch, run)


def test_rows_are_judged_by_what_is_left_of_them():
    layer, p = nn.Linear(2, 2), nn.utils.prune
    layer.weight.data = convcore.tensor([[3.0, 1.0], [2.0, 2.0]])
    p.custom_from_mask(layer, "weight", convcore.tensor([[0, 1], [1, 1]]))
    p.ln_structured(layer, "weight", 1, 2, 0)
    assert layer.weight.tolist() == [[0, 0], [2, 2]]


def test_pruning_over_several_layers(torch):
    def run(lib):
        p = module_of(lib, "prune")
        net = lib.nn.Sequential(lib.nn.Linear(3, 4), lib.nn.Linear(4, 2))
        p.l1_unstructured(net[0], "weight", 0.2)
        pairs = [(net[0], "weight"), (net[1], "weight"), (net[1], "bias")]
        p.global_unstructured(pairs, p.L1Unstructured, amount=0.4)
        out = [state(net), p.L1Unstructured(2).prune(lib.tensor([1.0, -3.0, 0.5]))]
        p.global_unstructured(pairs[:1], p.RandomUnstructured, amount=3)
        return [*out, state(net), p.is_pruned(net)]

    check(torch, run)


def test_smallest_weights_are_pruned():
    layer = nn.Linear(4, 1)
    layer.weight.data = convcore.tensor([[3.0, -1.0, 0.5, 2.0]])
    nn.utils.prune.l1_unstructured(layer, "weight", 2)
    assert layer.weight.tolist() == [[3, 0, 0, 2]]
    assert layer.weight_orig.tolist() == [[3, -1, 0.5, 2]]


def fused(lib, transpose):
    kind = lib.nn.ConvTranspose2d if transpose else lib.nn.Conv2d
    layer, norm = kind(3, 4, 2, bias=transpose).eval(), lib.nn.BatchNorm2d(4).eval()
    norm.weight.data = lib.tensor([1.0, 2.0, 3.0, 4.0])
    norm.running_mean.copy_(lib.tensor([0.1, 0.2, 0.3, 0.4]))
    norm.running_var.mul_(2.0)
    x = lib.ones(1, 3, 5, 5)
    made = lib.nn.utils.fuse_conv_bn_eval(layer, norm, transpose)
    return [state(made), made(x), norm(layer(x))]


@pytest.mark.parametrize("transpose", [False, True])
def test_fused_layers_compute_the_same(torch, transpose):
    check(torch, lambda lib: fused(lib, transpose), 1e-5)
    _, ours, expected = fused(convcore, transpose)
    np.testing.assert_allclose(ours.detach().numpy(), expected.detach().numpy(), rtol=1e-4)


ERRORS = {
    "weight_norm": lambda lib: lib.nn.utils.weight_norm(
        lib.nn.utils.weight_norm(lib.nn.Linear(2, 2))
    ),
    "spectral_norm": lambda lib: lib.nn.utils.spectral_norm(
        lib.nn.utils.spectral_norm(lib.nn.Linear(2, 2))
    ),
    "no weight_norm": lambda lib: lib.nn.utils.remove_weight_norm(lib.nn.Linear(2, 2)),
    "no spectral_norm": lambda lib: lib.nn.utils.remove_spectral_norm(lib.nn.Linear(2, 2)),
    "iterations": lambda lib: lib.nn.utils.parametrizations.spectral_norm(
        lib.nn.Linear(2, 2), n_power_iterations=0
    ),
    "shape": lambda lib: module_of(lib, "parametrize").register_parametrization(
        lib.nn.Linear(2, 2), "weight", lib.nn.Linear(2, 5)
    ),
    "second shape": lambda lib: module_of(lib, "parametrize").register_parametrization(
        lib.nn.utils.parametrizations.weight_norm(lib.nn.Linear(2, 2)),
        "weight",
        lib.nn.Linear(2, 5),
    ),
    "name": lambda lib: module_of(lib, "parametrize").register_parametrization(
        lib.nn.Linear(2, 2), "x", lib.nn.ReLU()
    ),
    "no inverse": lambda lib: setattr(
        module_of(lib, "parametrize").register_parametrization(
            lib.nn.Linear(2, 2), "weight", lib.nn.ReLU()
        ),
        "weight",
        lib.ones(2, 2),
    ),
    "pickle": lambda lib: pickle.dumps(
        lib.nn.utils.parametrizations.weight_norm(lib.nn.Linear(2, 2))
    ),
    "share": lambda lib: module_of(lib, "prune").random_unstructured(conv(lib), "weight", 1.5),
    "number": lambda lib: module_of(lib, "prune").random_unstructured(conv(lib), "bias", 5),
    "text": lambda lib: module_of(lib, "prune").random_unstructured(conv(lib), "weight", "x"),
    "one axis": lambda lib: module_of(lib, "prune").ln_structured(conv(lib), "bias", 0.5, 2, 0),
    "axis": lambda lib: module_of(lib, "prune").ln_structured(conv(lib), "weight", 0.5, 2, 4),
    "weight_norm, axis": lambda lib: lib.nn.utils.weight_norm(lib.nn.Linear(3, 2), dim=2),
    "weight norm, axis": lambda lib: lib.nn.utils.parametrizations.weight_norm(
        lib.nn.Linear(3, 2), dim=-3
    ),
    "not pruned": lambda lib: module_of(lib, "prune").remove(conv(lib), "weight"),
    "training": lambda lib: lib.nn.utils.fuse_conv_bn_eval(conv(lib), lib.nn.BatchNorm2d(4)),
    "orthogonal_": lambda lib: lib.nn.init.orthogonal_(lib.empty(3)),
}


@pytest.mark.parametrize("function", ERRORS.values(), ids=ERRORS)
def test_errors_are_pytorchs(torch, function):
    check_error(torch, function)


@pytest.mark.parametrize("shape", [(4, 3), (3, 4), (3, 3), (4, 2, 3), (9, 9)])
def test_orthogonal_initialisation_is_pytorchs(torch, shape):
    check(torch, lambda lib: lib.nn.init.orthogonal_(lib.empty(*shape), gain=2.0), 1e-5)
    matrix = nn.init.orthogonal_(convcore.empty(*shape)).numpy().reshape(shape[0], -1)
    product = matrix.T @ matrix if len(matrix) >= matrix.shape[1] else matrix @ matrix.T
    np.testing.assert_allclose(product, np.eye(len(product)), atol=1e-5)


def test_cached_weights_are_those_of_their_own_module():
    with nn.utils.parametrize.cached():
        for k in range(30):
            layer = nn.Linear(1, 1, bias=False)
            layer.weight.data.fill_(k)
            nn.utils.parametrize.register_parametrization(layer, "weight", nn.Identity())
            assert layer.weight.item() == k
            del layer
