"""Resize, pools and ConvTranspose as ONNX Runtime and PyTorch compute them: sizes, ties, ends."""

import numpy as np
import pytest

import convcore

pytest.importorskip("onnx", reason="needs onnx: pip install 'convcore[onnx]'")

from onnx import helper, numpy_helper

from convcore.onnx import OnnxError, load


def run(op, *inputs, opset=18, outputs=1, **attributes):
    """Return the results of one node; inputs but the first are constants, None is left out."""
    arrays = {f"x{k}": np.asarray(each) for k, each in enumerate(inputs) if each is not None}
    names = [f"x{k}" if each is not None else "" for k, each in enumerate(inputs)]
    node = helper.make_node(op, names, [f"y{k}" for k in range(outputs)], **attributes)
    code = helper.np_dtype_to_tensor_dtype(arrays["x0"].dtype)
    graph = helper.make_graph(
        [node],
        "graph",
        [helper.make_tensor_value_info("x0", code, arrays["x0"].shape)],
        [helper.make_empty_tensor_value_info(f"y{k}") for k in range(outputs)],
        [numpy_helper.from_array(array, name) for name, array in arrays.items() if name != "x0"],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    with convcore.no_grad():
        found = load(model.SerializeToString())(convcore.tensor(arrays["x0"]))
    return [each.numpy() for each in found] if outputs > 1 else found.numpy()


def line(values, dtype="float32"):
    return np.asarray(values, dtype)[None, None]


def resized(values, scale=None, size=None, dtype="float32", **attributes):
    """Return a line, resized."""
    scales = None if scale is None else np.float32([1, 1, scale])
    sizes = None if size is None else np.int64([1, 1, size])
    return run("Resize", line(values, dtype), None, scales, sizes, **attributes)[0, 0].tolist()


ASYMMETRIC = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}


def test_scales_are_float32():
    assert resized(range(9), 1 / 3, **ASYMMETRIC) == [0, 3, 6]
    assert len(resized(range(10), 0.7)) == 7
    assert len(resized(range(10), 0.7, mode="linear")) == 7


@pytest.mark.parametrize(("opset", "op"), [(7, "Upsample"), (9, "Upsample"), (10, "Resize")])
def test_old_opsets_count_in_float32_too(opset, op):
    x, scales = line(range(6)), [1.0, 1.0, 1.2]
    if opset == 7:
        y = run(op, x, opset=opset, scales=scales)
    else:
        y = run(op, x, np.float32(scales), opset=opset)
    assert y.ravel().tolist() == [0, 0, 1, 2, 3, 4, 5]


def test_sizes_of_a_policy_are_float32():
    y = run(
        *("Resize", np.ones((10, 10), "f"), None, None, np.int64([7, 20])),
        keep_aspect_ratio_policy="not_larger",
    )
    assert y.shape == (7, 7)


@pytest.mark.parametrize(("mode", "pixel"), [("round_prefer_ceil", 15), ("round_prefer_floor", 14)])
def test_ties_are_found_beside_rounding(mode, pixel):
    assert resized(range(20), size=6, nearest_mode=mode)[4] == pixel


def test_align_corners_ends_at_the_last_pixel():
    how = {"mode": "linear", "coordinate_transformation_mode": "align_corners"}
    assert resized([1, 2, 3, 4], 0.6, **how) == [1, 4]


def test_a_single_pixel_of_pytorch_half_pixel_is_the_first():
    how = {"mode": "cubic", "coordinate_transformation_mode": "pytorch_half_pixel"}
    assert resized([1, 2, 3, 4], size=1, **how) == [1]


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_pixels_stay_where_their_number_does(mode):
    assert resized([3, 1, 4, 1], 1.2, mode=mode, antialias=int(mode != "nearest")) == [3, 1, 4, 1]


def test_a_region_counts_even_if_the_size_stays():
    roi = np.float32([0, 0, 0.5, 1, 1, 1])
    y = run(
        *("Resize", line([0, 1, 2, 3, 4]), roi, np.float32([1, 1, 1])),
        mode="linear",
        coordinate_transformation_mode="tf_crop_and_resize",
    )
    assert y.ravel().tolist() == [2, 2.5, 3, 3.5, 4]


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_integers_are_clipped_and_rounded_once(dtype):
    limits = np.iinfo(dtype)
    values = [limits.min] * 3 + [limits.max] * 3
    exact = resized(values, 2.0, mode="cubic")
    y = resized(values, 2.0, mode="cubic", dtype=dtype)
    assert min(exact) < limits.min and max(exact) > limits.max
    assert y == np.clip(np.round(exact), limits.min, limits.max).tolist()


def test_bytes_are_not_rounded_between_axes():
    x = np.array([[0, 1], [1, 1]], np.uint8)[None, None]
    scales = np.float32([1, 1, 2, 2])
    exact = run("Resize", x.astype("f"), None, scales, mode="linear")
    assert np.array_equal(run("Resize", x, None, scales, mode="linear"), np.round(exact))


def test_a_long_line_needs_no_table_of_outputs_times_inputs():
    x = np.arange(300_000, dtype="f")
    how = {"mode": "linear", "coordinate_transformation_mode": "asymmetric"}
    assert resized(x, 0.5, **how) == x[::2].tolist()


@pytest.mark.parametrize(
    ("attributes", "text"),
    [
        ({"mode": "lanczos"}, "mode is 'lanczos'"),
        ({"nearest_mode": "round"}, "nearest_mode is 'round'"),
        ({"coordinate_transformation_mode": "half"}, "coordinate_transformation_mode 'half'"),
    ],
)
def test_unknown_modes_of_resize_are_named(attributes, text):
    with pytest.raises(OnnxError, match=text):
        resized(range(4), 2.0, **attributes)


def test_scales_of_other_axes_are_refused():
    with pytest.raises(OnnxError, match="2 scales are given, 3 are needed"):
        run("Resize", line(range(4)), None, np.float32([1, 2]))


@pytest.mark.parametrize("auto_pad", ["NOTSET", "SAME_UPPER", "SAME_LOWER"])
def test_a_larger_output_shape_adds_at_the_end(auto_pad):
    weight, bias = np.ones((1, 1, 2), "f"), np.float32([0.5])
    y = run(
        *("ConvTranspose", line([1, 2, 3]), weight, bias),
        strides=[3],
        output_shape=[10],
        auto_pad=auto_pad,
    )
    assert y.ravel().tolist() == [1.5, 1.5, 0.5, 2.5, 2.5, 0.5, 3.5, 3.5, 0.5, 0.5]


@pytest.mark.parametrize(
    ("shape", "kernel", "attributes"),
    [
        ((1, 2, 5), [3], {"pads": [2, 0]}),
        ((2, 1, 4, 5), [3, 2], {"pads": [1, 1, 2, 0], "strides": [2, 1]}),
        ((1, 2, 4, 4), [2, 2], {"pads": [1, 1, 1, 1], "dilations": [2, 3]}),
        ((1, 1, 3, 4, 3), [2, 3, 2], {"auto_pad": "SAME_LOWER"}),
    ],
)
@pytest.mark.parametrize("order", [0, 1])
def test_the_place_of_a_maximum_is_in_the_image(shape, kernel, attributes, order):
    x = np.full(shape, -np.inf, "f")
    x.flat[0] = 1
    options = {"kernel_shape": kernel, "storage_order": order, **attributes}
    y, places = run("MaxPool", x, outputs=2, **options)
    axes = (0, 1, *range(x.ndim - 1, 1, -1)) if order else range(x.ndim)
    assert places.min() >= 0 and places.max() < x.size
    assert np.array_equal(x.transpose(axes).ravel()[places], y)


def test_a_window_of_pads_alone_has_the_lowest_integer():
    options = {"kernel_shape": [2], "dilations": [3], "pads": [1, 1]}
    x = line([-5, -7], "int8")
    assert run("MaxPool", x, **options).ravel().tolist() == [-128]
    assert run("AveragePool", line([-5, -7]), opset=19, **options).ravel().tolist() == [0]
