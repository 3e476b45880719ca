"""Tensors changed in place before backward: right gradients, or the in-place error; the short form.

The long form is ``python tests/fuzz/in_place.py``.
"""

import inspect

import numpy as np
import pytest
from in_place_changes import findings
from right_calls import FUNCTIONS, LAYERS
from scripts import fuzz_script

from convcore import nn
from convcore._tensor import wrap
from convcore.autograd.node import record

in_place = fuzz_script("in_place")

# Without a computation of their own, or made of layers that are in LAYERS.
OF_OTHERS = {
    *("Module", "Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict"),
    *("DataParallel", "RNNBase", "RNNCellBase", "Transformer"),
    *("TransformerEncoder", "TransformerDecoder"),
}


@pytest.mark.filterwarnings("ignore")
def test_gradients_of_drawn_calls_do_not_come_from_changed_tensors():
    assert list(in_place.hunt(8)) == []


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_of_functions_do_not_come_from_changed_tensors(name):
    assert list(findings(FUNCTIONS[name])) == []


@pytest.mark.parametrize("name", LAYERS)
def test_gradients_of_layers_do_not_come_from_changed_tensors(name):
    assert list(findings(LAYERS[name])) == []


def test_every_layer_has_a_right_call():
    classes = inspect.getmembers(nn, inspect.isclass)
    layers = {name for name, one in classes if issubclass(one, nn.Module)}
    lazy = {name for name in layers if name.startswith("Lazy")}
    assert layers - lazy - OF_OTHERS == {name.split(",")[0] for name in LAYERS}


def _scaled(x, by, saved):
    """Return x * by, whose backward reads `by` with or without its version."""
    factors = by._array
    out = wrap(x._array * factors)
    backward = lambda needs, grad, *saved: wrap(grad._array * factors)  # noqa: E731
    record("ScaledBackward0", (x,), out, backward, (by,) if saved else ())
    return out


def test_what_is_read_without_its_version_is_found():
    calls = {
        saved: lambda o, saved=saved: _scaled(o.floats(3), o.kept(3), saved)
        for saved in (True, False)
    }
    assert list(findings(calls[True])) == []
    assert list(findings(calls[False])) == ["tensor 1 changed: another gradient of order 1"]


def test_what_is_written_into_without_a_new_version_is_found():
    def call(o):
        x, total = o.floats(3), o.kept(3)
        np.add(total._array, 1, out=total._array)
        return x * 2

    assert list(findings(call)) == ["argument 1 was written into, and its version stays 0"]
