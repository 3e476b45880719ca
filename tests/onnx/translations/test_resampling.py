"""Interpolation, pools and transposed convolutions as nodes that compute the same everywhere."""

import pytest

import convcore
from convcore import nn
from convcore.nn import functional as F
from convcore.onnx.errors import OnnxError

IMAGES = {1: (2, 3, 7), 2: (2, 3, 7, 5), 3: (2, 3, 5, 4, 7)}


def image(rank=2, dtype=convcore.float32):
    x = convcore.randn(IMAGES[rank], generator=convcore.Generator().manual_seed(rank))
    return (x * 50 + 128).clamp(0, 255).to(dtype) if dtype is convcore.uint8 else x.to(dtype)


def of_images(**options):
    return lambda x: F.interpolate(x, **options)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "area", "linear"])
@pytest.mark.parametrize("factor", [0.3, 0.7, 1.2, 1.7, 2, 2.15, None])
def test_images_are_resized_by_factors_and_to_sizes(agree, rank, mode, factor):
    mode = {1: "linear", 2: "bilinear", 3: "trilinear"}[rank] if mode == "linear" else mode
    how = {"size": (1, 9, 4)[:rank]} if factor is None else {"scale_factor": factor}
    agree(of_images(mode=mode, **how), image(rank))


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("mode", ["linear", "bilinear", "bicubic", "trilinear"])
@pytest.mark.parametrize(
    "how",
    [
        {"size": 1}, {"size": 4}, {"scale_factor": 1.2}, {"scale_factor": 0.7},
        {"scale_factor": 0.7, "recompute_scale_factor": True},
    ],
)  # fmt: skip
def test_corners_and_sizes_of_one_pixel(agree, mode, align_corners, how):
    rank = {"linear": 1, "trilinear": 3}.get(mode, 2)
    agree(of_images(mode=mode, align_corners=align_corners, **how), image(rank))


@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "lanczos"])
@pytest.mark.parametrize("opset", [13, 17, 21])
def test_antialiased_images(agree, mode, opset):
    how = {"mode": mode, "antialias": True}
    agree(of_images(size=(3, 9), **how), image(), opset_version=opset)
    agree(of_images(scale_factor=(0.4, 1.5), **how), image(), opset_version=opset)


@pytest.mark.parametrize("mode", ["nearest", "bilinear"])
def test_a_factor_that_float32_rounds_down_gives_the_same_size(agree, mode):
    x = convcore.linspace(0, 1, 1000).reshape(1, 1, 100, 10)
    agree(of_images(scale_factor=0.29, mode=mode), x)


def test_doubles_are_resized_by_what_runs(agree):
    x = image(dtype=convcore.float64)
    agree(of_images(scale_factor=2, mode="nearest"), x)
    agree(of_images(scale_factor=1.7, mode="bilinear"), x)


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
def test_bytes_are_rounded_as_here(mode):
    net = nn.Upsample(scale_factor=1.7, mode=mode)
    x = image(dtype=convcore.uint8)
    result = convcore.onnx.export(net, (x,))(x)
    result = result[0] if isinstance(result, tuple | list) else result
    assert result.dtype is convcore.uint8
    assert (result.int() - net(x).int()).abs().max() <= (mode != "nearest")


POOLS = {
    "the last window is dropped": lambda rank: (3, 3, 1),
    "a window more": lambda rank: (2, 2, 0),
    "a window more of pads": lambda rank: (3, 2, 1),
    "one axis of each": lambda rank: ((3, 2, 3)[:rank], (3, 2, 2)[:rank], (1, 0, 1)[:rank]),
}


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("windows", POOLS)
def test_pools_of_ceil_mode(agree, rank, windows):
    kernel, stride, padding = POOLS[windows](rank)
    for size in (5, 6):
        x = convcore.randn(2, 3, *(size,) * rank)
        options = {"padding": padding, "ceil_mode": True}
        agree(lambda x, o=options: getattr(F, f"max_pool{rank}d")(x, kernel, stride, **o), x)
        for counts in (False, True):
            mean = getattr(nn, f"AvgPool{rank}d")
            agree(mean(kernel, stride, count_include_pad=counts, **options), x)


@pytest.mark.parametrize("counts", [False, True])
def test_pools_of_ceil_mode_where_sizes_are_free(agree, counts):
    for size in (5, 6):
        x = convcore.randn(1, 2, size, 5)
        agree(nn.MaxPool2d(3, 2, 1, ceil_mode=True), x, free=2)
        agree(nn.AvgPool2d(3, 2, 1, ceil_mode=True, count_include_pad=counts), x, free=2)


def test_dilated_pools_with_pads_as_long_as_windows(agree):
    x = convcore.randn(1, 2, 8)
    agree(lambda x: F.max_pool1d(x, 2, 2, 1, dilation=3, ceil_mode=True), x)


@pytest.mark.parametrize("ceil", [False, True])
def test_places_of_maxima(agree, ceil):
    x = convcore.randn(2, 3, 6, 5)
    agree(lambda x: F.max_pool2d(x, 3, 2, 1, 1, ceil, return_indices=True), x)


@pytest.mark.parametrize("ceil", [False, True])
def test_divisors_of_means(agree, ceil):
    for divisor in (1, 5):
        options = {"ceil_mode": ceil, "divisor_override": divisor}
        agree(lambda x, o=options: F.avg_pool2d(x, 3, 2, 1, **o), convcore.randn(1, 2, 6, 5))


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("opset", [17, 18])
def test_adaptive_pools_of_windows_of_several_sizes(agree, rank, opset):
    for name in ("AdaptiveAvgPool", "AdaptiveMaxPool"):
        agree(getattr(nn, f"{name}{rank}d")(3), image(rank), opset_version=opset)
        agree(getattr(nn, f"{name}{rank}d")(8), image(rank), opset_version=opset)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("padding", [0, 1, 2])
@pytest.mark.parametrize(("stride", "extra"), [(1, 1), (1, 2), (2, 1), (2, 2)])
def test_output_padding_beyond_the_stride(agree, rank, padding, stride, extra):
    net = getattr(nn, f"ConvTranspose{rank}d")(
        2, 3, 3, stride, padding, output_padding=extra, dilation=3
    )
    x = convcore.randn(1, 2, *(3,) * rank)
    agree(net, x)
    if rank == 2:
        agree(net, x, free=2)


def test_softplus_and_norms_with_other_options(agree):
    x = convcore.randn(2, 3, 4, 5) * 4
    for options in ((2.5, 20), (1, 1.5), (0.5, 3.0)):
        agree(nn.Softplus(*options), x)
    net = nn.InstanceNorm2d(3, affine=True, track_running_stats=True)
    net(x)
    agree(net.eval(), x)


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (of_images(scale_factor=1.7), "where sizes are free"),
        (of_images(scale_factor=0.5, mode="bilinear", antialias=True), "where sizes are free"),
        (of_images(size=(3, 3), mode="area"), "where sizes are free"),
    ],
)
def test_what_depends_on_free_sizes_is_refused(agree, function, text):
    with pytest.raises(OnnxError, match=text):
        agree(function, image(), free=2)
