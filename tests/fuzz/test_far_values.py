"""Right calls in whose tensors one number is far out; the short form.

The long form is ``python tests/fuzz/far_values.py``.
"""

import pytest
from scripts import fuzz_script

far_values = fuzz_script("far_values")


@pytest.mark.subprocess
def test_far_numbers_in_tensors_give_results_or_clear_errors(tmp_path):
    assert far_values.hunt(0, "", tmp_path) == []


def test_what_is_wrong_with_a_far_number_is_told():
    def call(o):
        index = o.ints(3, 2)
        if index.max() >= 2**62:
            raise KeyError(index)
        return o.floats(3)[index % 3]

    found = list(far_values.findings(call))
    assert len(found) == 2 and all("in tensor 0: KeyError" in one for one in found)
