"""Private names of PyTorch's that packages import do what they do there."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

import convcore
from convcore import overrides
from convcore._errors import missing as errors


@pytest.fixture(params=["convcore", "torch"])
def library(request: pytest.FixtureRequest) -> Any:
    """Return either library, and its modules by their paths."""
    if request.param == "torch":
        return request.getfixturevalue("torch"), importlib.import_module
    inside = "convcore.compat.torch"
    return convcore, lambda path: importlib.import_module(path.replace("torch", inside, 1))


def test_normal_numbers_and_sums_of_last_axes(library):
    lib, module = library
    utils = module("torch.distributions.utils")
    lib.manual_seed(3)
    drawn = utils._standard_normal(lib.Size([2, 3]), lib.float32, lib.device("cpu"))
    lib.manual_seed(3)
    assert drawn.tolist() == lib.randn(2, 3).tolist()
    assert utils._sum_rightmost(lib.ones(2, 3, 4), 2).tolist() == [12, 12]
    assert utils._sum_rightmost(lib.ones(2), 0).tolist() == [1, 1]


def test_backends_are_names_in_small_letters(library):
    _, module = library
    distributed = module("torch.distributed")
    backend = distributed.Backend
    assert (backend.GLOO, backend.NCCL, backend.MPI) == ("gloo", "nccl", "mpi")
    assert backend("GLOO") == backend.GLOO and type(backend("Mine")) is str
    assert {"gloo", "nccl", "mpi"} <= set(backend.backend_list)
    assert backend.default_device_backend_map["cpu"] == "gloo"
    with pytest.raises(ValueError, match="string-ish"):
        backend(3)
    for name in (backend.GLOO, backend.NCCL, backend.MPI):
        assert isinstance(getattr(distributed, f"is_{name}_available")(), bool)
    assert isinstance(distributed.ReduceOp.SUM, distributed.ReduceOp.RedOpType)


def test_what_optimizers_are_written_with(library):
    lib, module = library
    optimizer = module("torch.optim.optimizer")
    numbers = [lib.ones(2), None]
    choose = optimizer._default_to_fused_or_foreach
    assert choose(numbers, False) == (False, False)
    assert choose(numbers, False, True) == (True, False)
    assert choose(numbers, True, True) == (False, False)
    assert choose([lib.arange(3)], False, use_fused=True) == (False, False)
    devices = ["cuda", "xpu", "hpu", "privateuseone", "xla"]
    assert optimizer._get_capturable_supported_devices() == devices
    assert optimizer._get_capturable_supported_devices(False) == devices[:-1]

    class Mine:
        def __init__(self, differentiable):
            self.defaults = {"differentiable": differentiable}

        @optimizer._use_grad_for_differentiable
        def step(self):
            return lib.is_grad_enabled()

    assert [Mine(True).step(), Mine(False).step(), lib.is_grad_enabled()] == [True, False, True]


def test_lists_are_bounded_in_place(library):
    lib, module = library
    top = (
        module("torch") if lib is not convcore else importlib.import_module("convcore.compat.torch")
    )
    find = top._fallback if lib is convcore else lambda name: getattr(top, name)
    pair = [lib.tensor([1.0, 5.0]), lib.tensor([3.0])]
    find("_foreach_maximum_")(pair, 2.0)
    find("_foreach_minimum_")(pair, [lib.tensor([4.0, 4.0]), lib.tensor([2.5])])
    assert [one.tolist() for one in pair] == [[2.0, 4.0], [2.5]]
    assert find("_cast_Long")(lib.tensor([1.7, -2.2])).tolist() == [1, -2]


def test_annotations_and_activations_have_their_names(library):
    lib, module = library
    loader = module("torch.utils.data.dataloader")
    assert loader._collate_fn_t and loader._worker_init_fn_t
    root = "convcore" if lib is convcore else "torch"
    transformer = importlib.import_module(f"{root}.nn.modules.transformer")
    assert transformer._get_activation_fn("relu") is lib.nn.functional.relu
    with pytest.raises(RuntimeError, match="should be relu/gelu, not tanh"):
        transformer._get_activation_fn("tanh")


def test_a_wrapped_function_shows_its_keyword_defaults():
    wrapped = overrides._intercepted(convcore.meshgrid)
    assert wrapped.__kwdefaults__ == {"indexing": None}


def test_a_private_name_is_not_said_to_be_missing_from_pytorch():
    found = str(errors.missing_module("torch.distributions.utils._no_such"))
    assert found.startswith("convcore has no torch.distributions.utils._no_such: of PyTorch's")
    assert str(errors.missing_attribute("torch.distributions.utils", "_no_such")) == found
    assert "private part of PyTorch" in str(errors.missing_attribute("torch._utils", "_no_such"))
