"""What notebooks show: tensors that look like images, modules, and summaries of nets."""

import base64
import html
import re
import struct
import zlib
from html.parser import HTMLParser

import numpy as np
import pytest

import convcore
from convcore import nn
from convcore._tensor.html import png


def pixels(page):
    """Return the pixels of the PNG in a page, read without the code that wrote them."""
    data = base64.b64decode(re.search(r'src="data:image/png;base64,([^"]+)"', page)[1])
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, chunks = 8, {}
    while at < len(data):
        size, name = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + size]
        assert struct.unpack(">I", data[at + 8 + size : at + 12 + size])[0] == zlib.crc32(
            name + body
        )
        chunks[name], at = body, at + 12 + size
    columns, rows, depth, kind, *_ = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert (depth, list(chunks)) == (8, [b"IHDR", b"IDAT", b"IEND"])
    channels = {0: 1, 2: 3}[kind]
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(rows, -1)
    assert not lines[:, 0].any()
    return lines[:, 1:].reshape(rows, columns, channels)


class Balance(HTMLParser):
    """Checks that every tag is closed where it was opened."""

    def __init__(self):
        super().__init__()
        self.open, self.text = [], []

    def handle_starttag(self, tag, attrs):
        self.open += [tag] * (tag != "img")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def read(page):
    """Return the text of a page that is well formed."""
    parser = Balance()
    parser.feed(page)
    parser.close()
    assert not parser.open
    return "".join(parser.text)


@pytest.fixture
def photo(rng):
    return rng.integers(0, 256, (10, 14, 3), dtype=np.uint8)


def test_image_of_bytes_is_shown_as_it_is(photo):
    page = convcore.from_numpy(photo)._repr_html_()
    np.testing.assert_array_equal(pixels(page), photo)
    assert "Tensor of [10, 14, 3]" in read(page)


def test_channels_first_and_strided_is_the_same_image(photo):
    image = convcore.from_numpy(photo).permute(2, 0, 1)
    np.testing.assert_array_equal(pixels(image._repr_html_()), photo)


def test_floats_from_0_to_1_are_not_scaled(photo):
    page = (convcore.from_numpy(photo).float() / 255)._repr_html_()
    np.testing.assert_array_equal(pixels(page), photo)
    assert "scaled" not in page


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_other_floats_are_scaled_and_say_so(dtype):
    ramp = np.linspace(-3, 5, 100).astype(dtype).reshape(1, 10, 10)
    page = convcore.from_numpy(ramp).requires_grad_()._repr_html_()
    shown = pixels(page).ravel()
    assert shown[0] == 0 and shown[-1] == 255 and (np.diff(shown.astype(int)) >= 0).all()
    assert "-3 to 5 scaled to black and white" in read(page)


def test_masks_are_black_and_white():
    mask = convcore.zeros(1, 9, 9, dtype=convcore.bool)
    mask[0, 4] = True
    shown = pixels(mask._repr_html_())
    assert shown[4].min() == 255 and shown[:4].max() == 0


def test_constant_and_huge_floats_are_shown():
    assert pixels(convcore.full((1, 9, 9), 7.0)._repr_html_()).max() == 0
    huge = convcore.tensor([-1e308, 1e308], dtype=convcore.float64).repeat(1, 9, 5)
    assert set(pixels(huge._repr_html_()).ravel().tolist()) == {0, 255}


@pytest.mark.parametrize(
    "tensor",
    [
        convcore.zeros(3),
        convcore.tensor(2.0),
        convcore.zeros(3, 3, 3),
        convcore.zeros(2, 9, 9),
        convcore.zeros(1, 3, 9, 9),
        convcore.zeros(9, 9),
        convcore.zeros(3, 9, 0),
        convcore.zeros(3, 9, 9, dtype=convcore.int64),
        convcore.zeros(3, 9, 9, dtype=convcore.complex64),
        convcore.full((3, 9, 9), float("nan")),
        convcore.full((3, 9, 9), float("inf")),
        convcore.empty(3, 9, 9, device="meta"),
    ],
    ids=lambda tensor: f"{list(tensor.shape)} {tensor.dtype}",
)
def test_anything_else_is_text(tensor):
    assert tensor._repr_html_() == f"<pre>{html.escape(repr(tensor))}</pre>"


def test_large_images_are_thinned_without_being_read():
    # 300 million elements of one byte of memory
    image = convcore.zeros(1, dtype=convcore.uint8).expand(3, 8000, 8000)
    page = image._repr_html_()
    assert max(pixels(page).shape) == 250
    assert len(page) < 10_000
    vast = convcore.zeros(1).expand(1000, 100_000)
    assert len(vast._repr_html_()) < 2000


def test_text_is_bounded():
    convcore.set_printoptions(profile="full")
    try:
        assert len(convcore.zeros(50_000)._repr_html_()) < 21_000
    finally:
        convcore.set_printoptions(profile="default")


def test_png_of_noise_is_no_longer_than_its_pixels(rng):
    noise = rng.integers(0, 256, (256, 256, 3), dtype=np.uint8)
    assert len(png(noise)) < 1.01 * noise.size


class Rude(nn.Module):
    """A module whose texts are HTML."""

    def __init__(self):
        super().__init__()
        self.add_module("<i>", nn.Linear(3, 2))
        self.register_parameter("a&b", nn.Parameter(convcore.zeros(2), requires_grad=False))
        self.register_buffer("seen", convcore.zeros(1))
        self.add_module("none", None)

    def extra_repr(self):
        return "<script>alert('x')</script>\n" + 500 * "x"


def test_module_is_a_tree_with_shapes_and_counts():
    page = Rude()._repr_html_()
    text = read(page)
    assert "<script" not in page and "<i>" not in page
    assert "Rude(<script>alert('x')</script>, xxx" in text and 201 * "x" not in text
    assert ", 10 parameters" in text  # with the frozen ones
    assert "a&b: [2], float32, not trained" in text.replace("torch.", "")
    assert "seen: [1], float32, buffer" in text.replace("torch.", "")
    assert "<i>: Linear(in_features=3, out_features=2, bias=True), 8 parameters" in text
    assert "none: None" in text
    assert page.count("<details open>") == 1


def test_module_that_is_lazy_has_no_shapes_yet():
    assert "weight: not initialized yet" in read(nn.LazyLinear(3)._repr_html_())


def test_large_and_deep_modules_are_cut():
    wide = nn.Sequential(*(nn.ReLU() for _ in range(2000)))
    assert "... 1501 more" in read(wide._repr_html_())
    deep = nn.ReLU()
    for _ in range(200):
        deep = nn.Sequential(deep)
    assert "... 1 more" in read(deep._repr_html_())
    many = nn.ParameterList(convcore.zeros(1) for _ in range(600))
    assert "... 100 more" in read(many._repr_html_())


def test_summary_is_a_table():
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU())
    found = convcore.summary(net, (1, 1, 5, 5))
    text = read(found._repr_html_())
    for word in ("Multiply-adds", "Conv2d", "162", "Parameters     20: 20 are trained"):
        assert word in text
    found.rows[1].name = "<b>"
    assert "<b>" not in found._repr_html_()
    found.rows *= 300
    assert "... 400 more" in read(found._repr_html_())
