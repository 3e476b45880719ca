"""Random resizes, pools and transposed convolutions, read from ONNX and written as ONNX.

    python tests/fuzz/onnx_resampling.py --count=50_000 --seed=1
    python tests/fuzz/onnx_resampling.py --only=resize,interpolate
    python tests/fuzz/onnx_resampling.py --case=resize:1000042      # one case again, shown

A node is loaded, run and compared with ONNX Runtime, or with the ONNX reference evaluator where
ONNX Runtime refuses it or deviates (`DEVIATIONS`).  A call is compared with PyTorch, exported, and
the file is run by ONNX Runtime and by convcore.  A case is drawn from its number alone.  Exit code
1 if a result differs, or if a call that PyTorch computes is refused.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import convcore
from convcore import nn
from convcore.nn import functional as F
from convcore.onnx import OnnxError

try:
    import onnxruntime
except ImportError:
    onnxruntime = None
try:
    import torch
except ImportError:
    torch = None

SCALES = (0.3, 1 / 3, 0.37, 0.5, 0.6, 2 / 3, 0.7, 0.75, 0.9, 1.0, 1.2, 1.5, 1.7, 2.0, 2.3, 3.0, 3.7)
TRANSFORMATIONS = (
    *("half_pixel", "half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners"),
    *("tf_crop_and_resize", "half_pixel_symmetric"),
)
ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
POLICIES = ("stretch", "stretch", "not_larger", "not_smaller")


class Draw:
    """Random choices from one number."""

    def __init__(self, number: int) -> None:
        self.rng = np.random.default_rng(number)

    def pick(self, values: Any) -> Any:
        return values[int(self.rng.integers(len(values)))]

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def int(self, low: int, high: int) -> int:
        """Return an int in [low, high]."""
        return int(self.rng.integers(low, high + 1))

    def ints(self, low: int, high: int, count: int) -> list[int]:
        return [self.int(low, high) for _ in range(count)]

    def scale(self) -> float:
        return self.pick(SCALES) if self.chance(0.8) else float(self.rng.uniform(0.2, 4))

    def sizes(self, rank: int) -> list[int]:
        """Return spatial sizes: short, and along one axis now and then long."""
        most = (0, 24, 12, 7)[min(rank, 3)]
        sizes = self.ints(1, most, rank)
        if rank == 1 and self.chance(0.2):
            sizes[0] = self.int(25, 400)
        return sizes

    def array(self, shape: Any, dtype: str = "float32", distinct: bool = False) -> np.ndarray:
        """Return random values; distinct ones show which of them was taken."""
        size = int(np.prod(shape))
        if np.dtype(dtype).kind in "iu":
            low = -128 if np.dtype(dtype).kind == "i" else 0
            values = self.rng.choice([low, low + 255, -1], size) if self.chance(0.3) else None
            if values is None or values.min(initial=0) < low:
                values = self.rng.integers(low, low + 256, size)
        elif distinct:
            values = self.rng.permutation(size) - size // 2
        else:
            values = self.rng.normal(size=size)
        return values.reshape(shape).astype(dtype)


# --- nodes that are read -------------------------------------------------------------------------


class Node(NamedTuple):
    """One operator with its inputs by name."""

    op: str
    opset: int
    inputs: dict[str, np.ndarray]
    attributes: dict[str, Any]
    outputs: int = 1
    free: tuple[str, ...] = ("x",)  # inputs that are no constants of the model
    is_exact: bool = False

    def model(self) -> onnx.ModelProto:
        names = [name if array is not None else "" for name, array in self.inputs.items()]
        outputs = [f"y{k}" for k in range(self.outputs)]
        given = {k: v for k, v in self.attributes.items() if v is not None}
        node = helper.make_node(self.op, names, outputs, "the_node", **given)
        here = {name: array for name, array in self.inputs.items() if array is not None}
        graph = helper.make_graph(
            [node],
            "graph",
            [self._info(name) for name in here if name in self.free],
            [onnx.ValueInfoProto(name=name) for name in outputs],
            [numpy_helper.from_array(a, name) for name, a in here.items() if name not in self.free],
        )
        opsets = [helper.make_opsetid("", self.opset)]
        return helper.make_model(
            graph, opset_imports=opsets, ir_version=helper.find_min_ir_version_for(opsets)
        )

    def _info(self, name: str) -> onnx.ValueInfoProto:
        array = self.inputs[name]
        code = helper.np_dtype_to_tensor_dtype(array.dtype)
        return helper.make_tensor_value_info(name, code, array.shape)

    def feeds(self) -> dict[str, np.ndarray]:
        return {name: self.inputs[name] for name in self.free if self.inputs[name] is not None}


def draw_resize(draw: Draw) -> Node:
    opset = draw.pick((10, 11, 13, 18, 18, 19, 19))
    mode = draw.pick(
        ("nearest", "nearest", "linear", "cubic") if opset > 10 else ("nearest", "linear")
    )
    rank = draw.pick((1, 2, 2, 3)) if mode != "cubic" else 2
    lead = 2 if draw.chance(0.85) else 0
    shape = [draw.int(1, 2), draw.int(1, 3)][:lead] + draw.sizes(rank)
    dtype = draw.pick(("float32",) * 5 + ("uint8", "int8"))
    x = draw.array(shape, dtype, mode == "nearest")
    transformation = draw.pick(TRANSFORMATIONS) if opset > 10 else "asymmetric"
    if opset == 11 and draw.chance(0.1) and mode == "nearest":
        transformation = "tf_half_pixel_for_nn"
    axes = None
    if opset >= 18 and draw.chance(0.4):
        axes = sorted(range(lead, lead + rank), key=lambda _: draw.rng.random())
    resized = list(range(lead, lead + rank)) if axes is None else [a % len(shape) for a in axes]
    before = 0 if axes is not None else lead
    by_sizes = opset > 10 and draw.chance(0.5)
    scales = np.array([1.0] * before + [draw.scale() for _ in resized], np.float32)
    if opset == 10 and mode == "nearest":  # where ONNX Runtime shrinks by the pixel above
        scales = np.maximum(scales, 1)
    if not all(
        np.floor(np.float32(s) * np.float32(shape[a])) >= 1
        for s, a in zip(scales[before:], resized, strict=True)
    ):
        by_sizes = opset > 10
        if not by_sizes:
            scales[before:] = 2
    wanted = shape[:before] + [draw.int(1, 2 * shape[a] + 1) for a in resized]
    roi = None
    if transformation == "tf_crop_and_resize":
        ends = np.sort(draw.rng.uniform(-0.3, 1.3, (2, len(resized))), 0)
        roi = np.concatenate([[0.0] * before, ends[0], [1.0] * before, ends[1]])
    roi = None if roi is None else roi.astype(np.float32)
    cubic = mode == "cubic"
    antialias = int(opset >= 18 and mode != "nearest" and draw.chance(0.35))
    attributes: dict[str, Any] = {"mode": mode}
    if opset > 10:
        attributes |= {
            "coordinate_transformation_mode": transformation,
            "nearest_mode": draw.pick(ROUNDINGS) if mode == "nearest" else None,
            "cubic_coeff_a": draw.pick((None, -0.5, -0.75)) if cubic else None,
            "exclude_outside": int(draw.chance(0.4)) if cubic or antialias else None,
            "extrapolation_value": 7.0 if roi is not None and draw.chance(0.8) else None,
        }
    if opset >= 18:
        attributes |= {"antialias": antialias, "axes": axes}
        if by_sizes:
            attributes["keep_aspect_ratio_policy"] = draw.pick(POLICIES)
        if opset >= 19 and axes and roi is None and draw.chance(0.2):
            # With a policy or a region, ONNX Runtime does not find negative axes.
            attributes |= {"keep_aspect_ratio_policy": None, "axes": [a - len(shape) for a in axes]}
    if opset == 10:
        inputs = {"x": x, "scales": scales}
    elif by_sizes:
        inputs = {"x": x, "roi": roi, "scales": None, "sizes": np.array(wanted, np.int64)}
        if opset < 13:  # where scales are no optional input
            inputs["roi"] = np.zeros(0, np.float32) if roi is None else roi
            inputs["scales"] = np.zeros(0, np.float32)
    else:
        inputs = {"x": x, "roi": np.zeros(0, np.float32) if roi is None else roi, "scales": scales}
    free = ("x",)
    if draw.chance(0.1):
        free += tuple(name for name in ("scales", "sizes") if name in inputs)
    return Node("Resize", opset, inputs, attributes, free=free, is_exact=mode == "nearest")


def draw_upsample(draw: Draw) -> Node:
    opset = draw.pick((7, 9))
    mode = draw.pick(("nearest", "linear"))
    rank = draw.pick((1, 2, 2, 3))
    x = draw.array(
        [draw.int(1, 2), draw.int(1, 3), *draw.sizes(rank)], "float32", mode == "nearest"
    )
    scales = [1.0, 1.0, *(max(1.0, draw.scale()) for _ in range(rank))]
    inputs, attributes = {"x": x}, {"mode": mode}
    if opset == 7:
        attributes["scales"] = scales
    else:
        inputs["scales"] = np.array(scales, np.float32)
    return Node("Upsample", opset, inputs, attributes, is_exact=mode == "nearest")


def _draw_windows(draw: Draw, dilated: bool = True) -> tuple[list[int], dict[str, Any]]:
    """Return the shape of an image and the attributes of windows over it."""
    while True:
        rank = draw.pick((1, 2, 2, 3))
        shape = [draw.int(1, 2), draw.int(1, 3), *draw.sizes(rank)]
        kernel, strides = draw.ints(1, 4, rank), draw.ints(1, 4, rank)
        dilations = draw.ints(1, 3, rank) if dilated and draw.chance(0.4) else [1] * rank
        auto_pad = draw.pick((None, None, None, "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"))
        pads = None
        if auto_pad in (None, "NOTSET") and draw.chance(0.8):
            pads = [draw.int(0, k - 1) for k in kernel * 2]
            if draw.chance(0.5):
                pads[rank:] = pads[:rank]
        total = (
            [b + a for b, a in zip(pads[:rank], pads[rank:], strict=True)] if pads else [0] * rank
        )
        spans = [d * (k - 1) + 1 for d, k in zip(dilations, kernel, strict=True)]
        same = (auto_pad or "").startswith("SAME")
        if same:  # neither oracle counts dilations in its pads, or pads windows that do not touch
            strides = [min(s, k) for s, k in zip(strides, kernel, strict=True)]
            dilations, spans = [1] * rank, kernel
        if same or all(s <= n + t for s, n, t in zip(spans, shape[2:], total, strict=True)):
            return shape, {
                "kernel_shape": kernel,
                "strides": strides if draw.chance(0.8) else None,
                "dilations": dilations if dilations != [1] * rank else None,
                "pads": pads,
                "auto_pad": auto_pad,
                "ceil_mode": int(draw.chance(0.5)) if not same else None,
            }


def draw_max_pool(draw: Draw) -> Node:
    shape, attributes = _draw_windows(draw)
    opset, outputs = draw.pick((11, 12, 22)), draw.pick((1, 1, 2))
    dtype = (
        "float32" if opset < 12 else draw.pick(("float32", "float32", "uint8", "int8", "float64"))
    )
    x = draw.array(shape, dtype)
    if dtype == "float32" and draw.chance(0.2):
        x[draw.rng.random(x.shape) < 0.7] = -np.inf
    if outputs == 2:
        attributes["storage_order"] = draw.pick((None, 0, 1))
    return Node("MaxPool", opset, {"x": x}, attributes, outputs, is_exact=True)


def draw_average_pool(draw: Draw) -> Node:
    opset = draw.pick((11, 19, 22))
    shape, attributes = _draw_windows(draw, opset >= 19)
    attributes["count_include_pad"] = draw.pick((None, 0, 1))
    return Node("AveragePool", opset, {"x": draw.array(shape)}, attributes)


def draw_lp_pool(draw: Draw) -> Node:
    opset = draw.pick((11, 18, 22))
    shape, attributes = _draw_windows(draw, opset >= 18)
    if opset < 18:
        attributes["ceil_mode"] = None
    attributes["p"] = draw.pick((None, 1, 2, 3))
    return Node("LpPool", opset, {"x": draw.array(shape)}, attributes)


def draw_global_pool(draw: Draw) -> Node:
    op = draw.pick(("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"))
    x = draw.array([draw.int(1, 2), draw.int(1, 3), *draw.sizes(draw.int(1, 3))])
    attributes = {"p": draw.pick((None, 1, 2, 3))} if op == "GlobalLpPool" else {}
    return Node(op, 17, {"x": x}, attributes)


def draw_conv_transpose(draw: Draw) -> Node:
    rank = draw.pick((1, 2, 2, 3))
    groups = draw.pick((1, 1, 2))
    kernel, strides = draw.ints(1, 4, rank), draw.ints(1, 3, rank)
    dilations = draw.ints(1, 2, rank) if draw.chance(0.4) else None
    sizes = draw.ints(1, 5, rank)
    x = draw.array([draw.int(1, 2), 2 * groups, *sizes])
    weight = draw.array([2 * groups, draw.int(1, 2), *kernel])
    bias = draw.array([weight.shape[1] * groups]) if draw.chance(0.6) else None
    spans = [d * (k - 1) + 1 for d, k in zip(dilations or [1] * rank, kernel, strict=True)]
    whole = [(n - 1) * s + span for n, s, span in zip(sizes, strides, spans, strict=True)]
    extra = [draw.int(0, s - 1) for s in strides] if draw.chance(0.4) else None
    attributes: dict[str, Any] = {
        "kernel_shape": kernel if draw.chance(0.7) else None,
        "strides": strides,
        "dilations": dilations,
        "group": groups,
        "output_padding": extra,
    }
    way = draw.pick(("pads", "pads", "output_shape", "auto_pad", "both", "none"))
    if way == "pads":
        ends = [draw.int(0, (w - 1) // 2) for w in whole]
        attributes["pads"] = ends + [draw.int(0, (w - 1) // 2) for w in whole]
    if way in ("output_shape", "both"):
        attributes["output_shape"] = [draw.int(1, w + 3) for w in whole]
    if way in ("auto_pad", "both"):
        same = ("SAME_UPPER", "SAME_LOWER") if all(map(int.__le__, strides, spans)) else ()
        # Where windows do not touch, ONNX Runtime returns less than input times stride.
        attributes["auto_pad"] = draw.pick((*same, "VALID", "NOTSET"))
    inputs = {"x": x, "w": weight, "b": bias}
    free = ("x",) if draw.chance(0.7) else ("x", "w")
    return Node("ConvTranspose", draw.pick((11, 22)), inputs, attributes, free=free)


NODES: dict[str, Callable[[Draw], Node]] = {
    "resize": draw_resize,
    "upsample": draw_upsample,
    "max_pool": draw_max_pool,
    "average_pool": draw_average_pool,
    "lp_pool": draw_lp_pool,
    "global_pool": draw_global_pool,
    "conv_transpose": draw_conv_transpose,
}


def _copies_a_region(node: Node) -> bool:
    """Whether ONNX Runtime copies an axis, of which another part is wanted."""
    crops = node.attributes.get("coordinate_transformation_mode") == "tf_crop_and_resize"
    return crops and any(n == m or scale == 1 for _, n, m, scale in _resized(node))


def _resized(node: Node) -> list[tuple[int, int, int, np.float32]]:
    """Return (axis, size, wanted size, scale) of the axes of a resize, in float32."""
    x, scales, sizes = node.inputs["x"], node.inputs.get("scales"), node.inputs.get("sizes")
    scales = np.float32(node.attributes["scales"]) if "scales" in node.attributes else scales
    axes = node.attributes.get("axes") or range(x.ndim)
    lengths = [x.shape[a] for a in axes]
    if sizes is None or not sizes.size:
        wanted = [int(np.float32(n) * np.float32(s)) for n, s in zip(lengths, scales, strict=True)]
    else:
        policy = node.attributes.get("keep_aspect_ratio_policy") or "stretch"
        wanted = [int(n) for n in sizes]
        scales = np.array(wanted, np.float32) / np.array(lengths, np.float32)
        if policy != "stretch":
            scales[:] = scales.min() if policy == "not_larger" else scales.max()
            wanted = [int(np.float32(n) * scales[0] + 0.5) for n in lengths]
    return [(a % x.ndim, *each) for a, *each in zip(axes, lengths, wanted, scales, strict=True)]


# What ONNX Runtime does otherwise than the standard's text says, and the reference does not.
DEVIATIONS: list[tuple[str, Callable[[Node], bool]]] = [
    ("copies an axis of scale 1, whatever its region is", _copies_a_region)
]


def in_floats(node: Node) -> Node | None:
    """Return the same resize of floats, or None.

    ONNX Runtime truncates weighted bytes, and clips them between axes; int8 as if it were uint8.
    """
    weighs = node.op == "Resize" and node.attributes["mode"] != "nearest"
    if not weighs or node.inputs["x"].dtype.kind not in "iu":
        return None
    return node._replace(inputs=node.inputs | {"x": node.inputs["x"].astype(np.float32)})


def as_bytes(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    limits = np.iinfo(dtype)
    return np.clip(np.round(array), limits.min, limits.max).astype(dtype)


def for_reference(node: Node) -> Node | None:
    """Return a node for the reference evaluator, which counts in float64; None if it deviates."""
    if node.op == "ConvTranspose" and node.attributes.get("output_shape"):
        return None  # it splits what is asked for beyond the whole, or cuts at the end
    if node.op not in ("Resize", "Upsample"):
        return node
    how = node.attributes.get("coordinate_transformation_mode", "asymmetric")
    axes = _resized(node)
    wanted = [m for _, _, m, _ in axes]
    attributes = dict(node.attributes)
    inputs = {"x": node.inputs["x"], "roi": node.inputs.get("roi"), "scales": None, "sizes": None}
    if node.opset < 11:
        attributes |= {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        attributes["scales"] = None
    if how in ("align_corners", "tf_crop_and_resize"):
        # It divides by sizes that are not rounded, as neither ONNX Runtime nor PyTorch does.
        if attributes.get("antialias"):
            return None
        inputs["sizes"] = np.array(wanted, np.int64)
        attributes["keep_aspect_ratio_policy"] = None
    elif wanted != [
        int(float(s) * n + (0.5 if "sizes" in node.inputs else 0)) for _, n, _, s in axes
    ]:
        return None  # in float64 the sizes are others
    elif node.inputs.get("sizes") is not None and node.inputs["sizes"].size:
        inputs["sizes"] = node.inputs["sizes"]
    else:
        inputs["scales"] = np.array([s for *_, s in axes], np.float32)
    stays = [n == m and s != 1 for _, n, m, s in axes]
    copies = all(n == m for _, n, m, _ in axes) or (attributes.get("antialias") and any(stays))
    if copies and how != "tf_crop_and_resize":
        return None  # it resizes what stays
    if how == "pytorch_half_pixel" and 1 in wanted:
        return None  # its coordinate of a single pixel is -0.5, or another if the scale leaves more
    if inputs["roi"] is None or not inputs["roi"].size:
        inputs["roi"] = None
        if how == "tf_crop_and_resize":
            inputs["roi"] = np.array([0.0] * len(axes) + [1.0] * len(axes), np.float32)
    return Node("Resize", max(node.opset, 19), inputs, attributes)


def _with_infinities(x: np.ndarray, results: list[np.ndarray]) -> list[np.ndarray]:
    """Return a MaxPool's results with -inf, of which ONNX Runtime makes the lowest number."""
    if x.dtype.kind != "f":
        return results
    values = np.where(results[0] == np.finfo(x.dtype).min, -np.inf, results[0]).astype(x.dtype)
    return [values, *results[1:]]


def _with_values(node: Node, results: list[np.ndarray], ours: bool) -> list[np.ndarray]:
    """Return a MaxPool's values, its places of finite ones, and what is at the places."""
    (values, places), x = results, node.inputs["x"]
    is_column_major = node.attributes.get("storage_order")
    order = (0, 1, *range(x.ndim - 1, 1, -1)) if is_column_major else range(x.ndim)
    # Of the lowest value ONNX Runtime knows no place, and ours is the first pixel.
    finite = np.isfinite(values) if x.dtype.kind == "f" else values > np.iinfo(x.dtype).min
    found = x.transpose(order).ravel()[places] if ours else values
    return [values, np.where(finite, places, 0), found]


def by_runtime(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> list[np.ndarray] | None:
    """Return what ONNX Runtime computes; None if it refuses the model or is not installed."""
    if onnxruntime is None:
        return None
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, ["CPUExecutionProvider"]
        )
        return session.run(None, feeds)
    except Exception:  # its errors have no common base below this
        return None


def by_reference(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> list[np.ndarray] | None:
    """Return what the reference evaluator computes; None where it cannot."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return [np.asarray(y) for y in ReferenceEvaluator(model).run(None, feeds)]
    except Exception:  # of any kind
        return None


def difference(ours: Any, theirs: Any, is_exact: bool = False, dtype: str = "") -> str:
    """Return how two results differ, or an empty text."""
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    if ours.shape != theirs.shape:
        return f"shape {ours.shape}, not {theirs.shape}"
    if ours.dtype != theirs.dtype:
        return f"dtype {ours.dtype}, not {theirs.dtype}"
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    if is_exact:
        same = (a == b) | (np.isnan(a) & np.isnan(b))
    elif ours.dtype.kind in "iu":
        same = np.abs(a - b) <= 1
    else:
        size = {"float64": 1e-6, "float16": 4e-3, "bfloat16": 3e-2}.get(
            dtype or ours.dtype.name, 3e-5
        )
        size *= max(1, max(ours.shape, default=1) / 30)  # of the rounding of coordinates
        finite = np.abs(b[np.isfinite(b)])
        same = np.isclose(a, b, size, size * max(1.0, finite.max(initial=0.0)), equal_nan=True)
    if same.all():
        return ""
    place = np.unravel_index(int(np.argmin(same)), same.shape)
    return f"{ours[place]} at {tuple(map(int, place))}, not {theirs[place]}"


def check_node(node: Node) -> tuple[str, str]:
    """Return (which oracle judged a node, what is wrong)."""
    model, feeds = node.model(), node.feeds()
    judged, dtype = in_floats(node) or node, node.inputs["x"].dtype
    oracle, expected = "ONNX Runtime", None
    if not any(of(node) for _, of in DEVIATIONS):
        expected = by_runtime(judged.model(), judged.feeds())
    if expected is None and (other := for_reference(judged)) is not None:
        expected, oracle = by_reference(other.model(), other.feeds()), "reference"
    if expected is not None and judged is not node:
        expected = [as_bytes(each, dtype) for each in expected]
    try:
        net = convcore.onnx.load(model.SerializeToString())
        found = net(*(convcore.tensor(array) for array in feeds.values()))
    except OnnxError as error:
        return (oracle, f"OnnxError: {error}") if expected is not None else ("none", "")
    except Exception as error:
        return oracle, f"{type(error).__name__}: {error}"
    if expected is None:
        return "none", ""
    found = [each.numpy() for each in (found if isinstance(found, tuple | list) else [found])]
    if node.op == "MaxPool":
        expected = _with_infinities(node.inputs["x"], expected)
        if node.outputs == 2:
            found, expected = _with_values(node, found, True), _with_values(node, expected, False)
    pairs = zip(found, expected, strict=True)
    wrong = [difference(one, other, node.is_exact) for one, other in pairs]
    return oracle, "; ".join(filter(None, wrong))


# --- calls that are written ----------------------------------------------------------------------


class Call(NamedTuple):
    """One call of a function of `nn.functional`."""

    name: str
    arrays: list[np.ndarray]
    options: dict[str, Any]
    dtype: str = ""  # that arrays are cast to, if NumPy has none such
    opset: int | None = None
    is_exact: bool = False
    is_exported: bool = True

    def inputs(self, library: Any) -> list[Any]:
        made = [library.tensor(array) for array in self.arrays]
        return [each.to(getattr(library, self.dtype)) for each in made] if self.dtype else made

    def result(self, library: Any) -> list[Any]:
        function = getattr(library.nn.functional, self.name)
        result = function(*self.inputs(library), **self.options)
        return list(result) if isinstance(result, tuple) else [result]


class Net(nn.Module):
    """A call as a net, of its first array; the others are constants."""

    def __init__(self, call: Call) -> None:
        super().__init__()
        self.call, self.constants = call, call.inputs(convcore)[1:]

    def forward(self, x: Any) -> Any:
        return getattr(F, self.call.name)(x, *self.constants, **self.call.options)


def draw_interpolate(draw: Draw) -> Call:
    mode = draw.pick(
        (
            "nearest",
            "nearest",
            "nearest-exact",
            "linear",
            "bilinear",
            "trilinear",
            "bicubic",
            "area",
        )
    )
    rank = {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}.get(mode) or draw.int(1, 3)
    dtype = draw.pick(("float32",) * 6 + ("float64", "float16", "bfloat16", "uint8"))
    if dtype == "uint8" and not (mode.startswith("nearest") or (rank == 2 and mode != "area")):
        dtype = "float32"
    exact = mode.startswith("nearest")
    shape = [draw.int(1, 2), draw.int(1, 3), *draw.sizes(rank)]
    x = draw.array(shape, dtype if dtype != "bfloat16" else "float32", exact)
    options: dict[str, Any] = {"mode": mode}
    if draw.chance(0.5):
        size = [draw.int(1, 2 * n + 1) for n in shape[2:]]
        options["size"] = size[0] if draw.chance(0.2) else size
    else:
        factors = [draw.scale() for _ in range(rank)]
        if mode == "area":  # which may leave nothing
            factors = [max(f, 1 / n) for f, n in zip(factors, shape[2:], strict=True)]
        options["scale_factor"] = max(factors) if draw.chance(0.4) else factors
        options["recompute_scale_factor"] = draw.pick((None, None, False, True))
    if not exact and mode != "area":
        options["align_corners"] = draw.pick((None, False, True))
    if mode in ("bilinear", "bicubic") and "16" not in dtype and draw.chance(0.3):
        # Of one column PyTorch 2.13 repeats the first row.
        options["antialias"] = _columns(shape, options) > 1
    cast = dtype if dtype == "bfloat16" else ""
    return Call(
        "interpolate", [x], options, cast, draw.pick((None, None, 13, 18, 21)), exact,
        dtype in ("float32", "float64"),
    )  # fmt: skip


def _columns(shape: list[int], options: dict[str, Any]) -> int:
    given = options.get("size", options.get("scale_factor"))
    last = given[-1] if isinstance(given, list) else given
    return last if "size" in options else int(shape[-1] * last)


def _is_tied(call: Call) -> bool:
    """Whether a pixel is nearest to the middle of two, where PyTorch's kernels differ."""
    if call.options.get("mode") != "nearest-exact":
        return False
    rank = call.arrays[0].ndim - 2
    sizes, options = call.arrays[0].shape[2:], call.options
    ties = []
    for axis, n in enumerate(sizes):
        given = options.get("size", options.get("scale_factor"))
        given = given[axis] if isinstance(given, list) else given
        out = given if "size" in options else int(n * given)
        ratio = out / n if "size" in options or options["recompute_scale_factor"] else given
        places = (np.arange(out) + 0.5) / ratio
        ties.append(np.abs(places - np.round(places)).min(initial=1.0) < 1e-5)
    return rank > 0 and any(ties)


def _draw_pool(draw: Draw, dilated: bool) -> tuple[int, np.ndarray, dict[str, Any]]:
    while True:
        rank = draw.int(1, 3)
        shape = [draw.int(1, 2), draw.int(1, 3), *draw.sizes(rank)]
        kernel = draw.ints(1, 4, rank)
        padding = [draw.int(0, k // 2) for k in kernel] if draw.chance(0.6) else [0] * rank
        dilation = draw.ints(1, 3, rank) if dilated and draw.chance(0.4) else [1] * rank
        spans = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
        if all(s <= n + 2 * p for s, n, p in zip(spans, shape[2:], padding, strict=True)):
            break
    options: dict[str, Any] = {
        "kernel_size": kernel,
        "stride": draw.ints(1, 4, rank) if draw.chance(0.8) else None,
        "padding": padding,
        "ceil_mode": draw.chance(0.6),
    }
    if dilated:
        options["dilation"] = dilation
    return rank, draw.array(shape), options


def draw_max_pool_call(draw: Draw) -> Call:
    rank, x, options = _draw_pool(draw, True)
    if draw.chance(0.2):
        options["return_indices"] = True
    return Call(f"max_pool{rank}d", [x], options, is_exact=True)


def draw_avg_pool_call(draw: Draw) -> Call:
    rank, x, options = _draw_pool(draw, False)
    if rank == 3:  # where PyTorch wants images as large as windows without their pads
        x = draw.array([*x.shape[:2], *map(max, options["kernel_size"], x.shape[2:])])
    options["count_include_pad"] = draw.chance(0.5)
    if rank > 1 and draw.chance(0.2):
        options["divisor_override"] = draw.int(1, 9)
    return Call(f"avg_pool{rank}d", [x], options)


def draw_adaptive_call(draw: Draw) -> Call:
    rank = draw.int(1, 3)
    shape = [draw.int(1, 2), draw.int(1, 3), *draw.sizes(rank)]
    name = draw.pick(("adaptive_avg_pool", "adaptive_max_pool"))
    size = [draw.int(1, n + 2) for n in shape[2:]]
    return Call(f"{name}{rank}d", [draw.array(shape)], {"output_size": size})


def draw_conv_transpose_call(draw: Draw) -> Call:
    rank, groups = draw.int(1, 3), draw.pick((1, 1, 2))
    kernel, stride, dilation = draw.ints(1, 4, rank), draw.ints(1, 3, rank), draw.ints(1, 3, rank)
    spans = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
    sizes = draw.ints(1, 5, rank)
    whole = [(n - 1) * s + span for n, s, span in zip(sizes, stride, spans, strict=True)]
    most = [max(s, d) - 1 for s, d in zip(stride, dilation, strict=True)]
    options = {
        "stride": stride,
        "padding": [draw.int(0, min(3, (w - 1) // 2)) for w in whole],
        "output_padding": [draw.int(0, m) for m in most],
        "groups": groups,
        "dilation": dilation,
    }
    weight = draw.array([2 * groups, draw.int(1, 2), *kernel])
    arrays = [draw.array([draw.int(1, 2), 2 * groups, *sizes]), weight]
    if draw.chance(0.5):
        arrays.append(draw.array([weight.shape[1] * groups]))
    return Call(f"conv_transpose{rank}d", arrays, options)


# The one call that is not exported: of such pads ONNX counts places otherwise.
REFUSED = "with indices, and pads as long as windows"

CALLS: dict[str, Callable[[Draw], Call]] = {
    "interpolate": draw_interpolate,
    "max_pool_call": draw_max_pool_call,
    "avg_pool_call": draw_avg_pool_call,
    "adaptive_call": draw_adaptive_call,
    "conv_transpose_call": draw_conv_transpose_call,
}


def check_call(call: Call, is_exported: bool = True) -> tuple[str, str]:
    """Return (what judged a call, what is wrong)."""
    theirs, refusal = None, None
    if torch is not None:
        try:
            theirs = [y.float().numpy() if call.dtype else y.numpy() for y in call.result(torch)]
        except Exception as error:
            refusal = error
    try:
        ours = [y.float().numpy() if call.dtype else y.numpy() for y in call.result(convcore)]
    except Exception as error:
        if refusal is not None or torch is None:
            return "refused", ""
        return "PyTorch", f"{type(error).__name__}: {error}"
    if "INTERNAL ASSERT" in str(refusal):
        return "refused", ""
    if refusal is not None:
        return "PyTorch", f"computed, where PyTorch raises {type(refusal).__name__}: {refusal}"
    for one, other in zip(ours, theirs or ours, strict=True):
        if (wrong := difference(one, other, call.is_exact, call.dtype)) and not _is_tied(call):
            return "PyTorch", f"eager: {wrong}"
    if not (is_exported and call.is_exported):
        return "PyTorch", ""
    (x, *_) = call.inputs(convcore)
    try:
        program = convcore.onnx.export(Net(call), (x,), opset_version=call.opset)
    except OnnxError as error:
        reason = str(error).partition("; called in")[0]
        return "export", "" if REFUSED in reason else f"refused: {reason}"
    (name,) = (each.name for each in program.model_proto.graph.input)
    found = by_runtime(program.model_proto, {name: x.numpy()})
    if found is None and onnxruntime is not None:
        found = by_reference(program.model_proto, {name: x.numpy()})
        if found is None or np.dtype(x.numpy().dtype) == np.float32:
            return "export", "ONNX Runtime does not run the file"
    back = convcore.onnx.load(program.model_proto.SerializeToString())(x)
    back = list(back) if isinstance(back, tuple | list) else [back]
    if found is not None and call.name.startswith("max_pool"):
        found = _with_infinities(call.arrays[0], found)
    for where, results in (("ONNX Runtime", found), ("loaded", [y.numpy() for y in back])):
        for one, other in zip(results or ours, ours, strict=True):
            if wrong := difference(one, other, call.is_exact):
                return "export", f"{where}: {wrong}"
    return "export", ""


def check(family: str, number: int) -> tuple[str, str]:
    """Return (what judged a case, what is wrong)."""
    with warnings.catch_warnings(), convcore.no_grad():
        warnings.simplefilter("ignore")
        if family in NODES:
            return check_node(NODES[family](Draw(number)))
        return check_call(CALLS[family](Draw(number)))


SHARES = {"resize": 6, "interpolate": 6, "upsample": 1, "global_pool": 1}


def cases(count: int, seed: int, only: list[str]) -> list[tuple[str, int]]:
    """Return (family, number) of so many cases."""
    families = [each for each in (*NODES, *CALLS) if not only or each in only]
    turns = [each for each in families for _ in range(SHARES.get(each, 3))]
    return [
        (family, seed * 10**6 + number)
        for number, family in zip(range(count), itertools.cycle(turns))
    ]


def run(count: int, seed: int, only: list[str]) -> tuple[list[tuple[str, int, str]], Counter]:
    """Return the findings of so many cases as (family, number, what), and what judged them."""
    found, judges = [], Counter()
    for family, number in cases(count, seed, only):
        judge, wrong = check(family, number)
        judges[family, judge] += 1
        if wrong:
            found.append((family, number, wrong))
    return found, judges


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="families, separated by commas")
    parser.add_argument("--case", help="one case again: family:number")
    options = parser.parse_args()
    convcore.set_num_threads(1)
    if options.case:
        family, _, number = options.case.partition(":")
        table = NODES if family in NODES else CALLS
        print(table[family](Draw(int(number))))
        print(*check(family, int(number)), sep=": ")
        return 0
    start = time.monotonic()
    found, judges = run(options.count, options.seed, [o for o in options.only.split(",") if o])
    for family, number, what in found[:200]:
        print(f"{family}:{number}\t{what[:200]}")
    for (family, judge), times in sorted(judges.items()):
        print(f"{times:7} {family} judged by {judge}")
    print(f"{options.count} cases, {len(found)} findings, {time.monotonic() - start:.0f} s")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
