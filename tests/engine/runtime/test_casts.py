"""Casts between float32 and bfloat16 beside ml_dtypes', in any layout, on any number of threads."""

import numpy as np
import pytest

from convcore.engine.runtime import casts

ml_dtypes = pytest.importorskip("ml_dtypes")

BFLOAT16, SINGLE = np.dtype(ml_dtypes.bfloat16), np.dtype(np.float32)
# A rest behind any vector and any thread's share.
SHAPE = (3, 5, 61, 53)
LAYOUTS = {
    "contiguous": lambda array: array,
    "channels_last": lambda array: array.transpose(0, 2, 3, 1).copy().transpose(0, 3, 1, 2),
    "gaps": lambda array: np.repeat(array, 2, axis=3)[..., ::2],
    "backwards": lambda array: array[::-1, ..., ::-1],
    "readonly": lambda array: np.broadcast_to(array[:1], array.shape),
}


def same(found, wanted):
    """Return whether arrays are equal, bit for bit but for which NaN it is."""
    numbers = ~np.isnan(wanted.astype("f4"))
    found_bits, bits = (a.view(f"u{a.itemsize}") for a in (found, wanted))
    return bool(np.all(np.where(numbers, found_bits == bits, np.isnan(found.astype("f4")))))


def all_halves():
    """Return float32 numbers around every bfloat16: itself, both neighbours of the tie, the tie."""
    upper = np.arange(1 << 16, dtype=np.uint32) << 16
    return np.stack([upper + rest for rest in (0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF)]).view("f4")


def test_every_number_is_rounded_to_nearest_even_and_widened_back():
    numbers = all_halves()
    with np.errstate(all="ignore"):
        narrow, wanted = casts.astype(numbers, BFLOAT16), numbers.astype(BFLOAT16)
        assert same(narrow, wanted)
        wide = casts.astype(narrow, SINGLE)
        assert same(wide, wanted.astype("f4"))
    assert np.isnan(wide[np.isnan(numbers)]).all()


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("dtype", [BFLOAT16, SINGLE], ids=str)
def test_any_layout_is_copied_in_its_order(name, dtype, rng):
    other = SINGLE if dtype == BFLOAT16 else BFLOAT16
    array = LAYOUTS[name](rng.standard_normal(SHAPE).astype(other))
    found, wanted = casts.astype(array, dtype), array.astype(dtype)
    assert found.dtype == dtype and found.strides == wanted.strides and same(found, wanted)
    out = np.zeros(SHAPE, dtype)
    casts.copyto(out, array)
    assert same(out, np.ascontiguousarray(wanted))


def test_values_broadcast(rng):
    values = rng.standard_normal(SHAPE[-1:]).astype("f4")
    out = np.zeros(SHAPE, BFLOAT16)
    casts.copyto(out, values)
    assert same(out, np.broadcast_to(values, SHAPE).astype(BFLOAT16))


def test_other_dtypes_and_byte_orders_are_numpys(rng):
    array = rng.standard_normal(SHAPE)
    for dtype in (np.dtype("f8"), np.dtype(">f4"), np.dtype("f2"), np.dtype("i4")):
        found = casts.astype(array.astype(BFLOAT16), dtype)
        assert found.dtype == dtype and (found == array.astype(BFLOAT16).astype(dtype)).all()
    swapped = array.astype(">f4")
    assert same(casts.astype(swapped, BFLOAT16), array.astype("f4").astype(BFLOAT16))


def test_what_may_not_be_written_is_refused(rng):
    out = np.zeros(SHAPE, BFLOAT16)
    out.flags.writeable = False
    with pytest.raises((ValueError, BufferError)):
        casts.copyto(out, rng.standard_normal(SHAPE).astype("f4"))
    assert not out.astype("f4").any()


@pytest.mark.parametrize("count", [2, 3, 7])
def test_bits_do_not_depend_on_threads(count, threads, rng):
    array = rng.standard_normal(1 << 18).astype("f4")
    threads(1)
    one = casts.astype(array, BFLOAT16)
    threads(count)
    assert (casts.astype(array, BFLOAT16).view("u2") == one.view("u2")).all()
