"""Every int of a function far out: right, or one clear error; the short form.

The long form is ``python tests/fuzz/far_integers.py``.
"""

import numpy as np
import pytest
from scripts import fuzz_script

import convcore
from convcore import distributed, nn

far_integers = fuzz_script("far_integers")


@pytest.mark.subprocess
def test_far_integers_are_right_or_clear_errors(tmp_path):
    names = "conv2d,max_pool2d,scatter,tensor_split,TransformerEncoder"
    assert far_integers.SWEEP.hunt(names, False, tmp_path) == []


@pytest.mark.parametrize("name", ["conv2d", "max_pool3d", "unfold", "roll", "Conv2d"])
def test_some_call_is_right_with_a_small_int_in_the_place_of_the_far_one(name):
    whole = [place for place in far_integers.places(name) if not place.listed]
    assert whole and all(far_integers.right_call(place) is not None for place in whole)


def test_the_int_alone_is_changed():
    (place,) = [one for one in far_integers.places("roll") if str(one) == "roll(shifts=0)"]
    seed = far_integers.right_call(place)
    (_, near, _), (_, far, _) = (far_integers._drawn(place, seed, n) for n in (1, 2**63))
    assert near[1] == 1 and far[1] == 2**63
    assert np.array_equal(near[0].array, far[0].array, equal_nan=True)


def test_what_is_no_module_group_or_dtype_is_named():
    with pytest.raises(TypeError, match="'module' must be Module, not list"):
        nn.utils.spectral_norm([1])
    with pytest.raises(TypeError, match="'module' must be Module, not list"):
        nn.utils.remove_weight_norm([1])
    with pytest.raises(TypeError, match="'group' must be ProcessGroup or None, not int"):
        distributed.get_rank(1)
    for limits in (convcore.iinfo, convcore.finfo):
        with pytest.raises(TypeError, match=r"'type' .* must be torch.dtype, not list"):
            limits([1])


def test_numbers_of_layers_and_windows_far_out_are_refused_at_once():
    with pytest.raises(RuntimeError, match="'num_layers' must be at most 65536"):
        nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2), 2**31)
