"""Data of models in other files: where they may lie, how much is read, into what."""

import os
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import convcore

onnx = pytest.importorskip("onnx", reason="needs onnx: pip install 'convcore[onnx]'")

from onnx import TensorProto, helper  # noqa: E402

from convcore.onnx import OnnxError, load  # noqa: E402


def external(name, sizes, location="w.bin", kind=TensorProto.FLOAT, **entries):
    tensor = TensorProto(name=name, dims=sizes, data_type=kind)
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor


def model(*tensors):
    """Return a model whose outputs are its tensors."""
    nodes = [helper.make_node("Identity", [t.name], [f"{t.name} out"]) for t in tensors]
    outputs = [helper.make_tensor_value_info(f"{t.name} out", t.data_type, t.dims) for t in tensors]
    graph = helper.make_graph(nodes, "g", [], outputs, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def written(folder, *tensors, name="net.onnx"):
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(model(*tensors).SerializeToString())
    return folder / name


W = np.arange(6, dtype=np.float32).reshape(2, 3)


def check(path):
    np.testing.assert_array_equal(load(path)().numpy(), W)


def test_a_cache_of_links_is_read(tmp_path):
    blobs = tmp_path / "blobs"
    written(blobs, external("w", (2, 3), "net.onnx.data"), name="1234")
    (blobs / "5678").write_bytes(W.tobytes())
    snapshot = tmp_path / "snapshots" / "x"
    snapshot.mkdir(parents=True)
    (snapshot / "net.onnx").symlink_to("../../blobs/1234")
    (snapshot / "net.onnx.data").symlink_to("../../blobs/5678")
    check(snapshot / "net.onnx")
    check(os.path.relpath(snapshot / "net.onnx"))


@pytest.mark.parametrize("link", ["the file", "the folder", "two links"])
def test_data_beside_the_file_that_a_link_leads_to_is_read(tmp_path, link):
    path = written(tmp_path / "real", external("w", (2, 3), "sub/w.bin"))
    (path.parent / "sub").mkdir()
    (path.parent / "sub" / "w.bin").write_bytes(W.tobytes())
    if link == "the folder":
        (tmp_path / "link").symlink_to(path.parent)
        return check(tmp_path / "link" / "net.onnx")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "one.onnx").symlink_to(path)
    (tmp_path / "two.onnx").symlink_to(tmp_path / "elsewhere" / "one.onnx")
    return check(tmp_path / ("two.onnx" if link == "two links" else "elsewhere/one.onnx"))


@pytest.mark.parametrize("target", ["../secret.bin", "../blobs2/w.bin", "/dev/zero"])
def test_links_that_lead_elsewhere_are_refused(tmp_path, target):
    for folder in ("blobs", "blobs2", "snapshot"):
        (tmp_path / folder).mkdir()
    for secret in ("secret.bin", "blobs2/w.bin"):
        (tmp_path / secret).write_bytes(W.tobytes())
    written(tmp_path / "blobs", external("w", (2, 3)), name="1234")
    (tmp_path / "snapshot" / "net.onnx").symlink_to("../blobs/1234")
    (tmp_path / "snapshot" / "w.bin").symlink_to(target)
    with pytest.raises(OnnxError, match="not below the model's folder"):
        load(tmp_path / "snapshot" / "net.onnx")


@pytest.mark.parametrize(
    ("sizes", "entries", "text"),
    [
        ((2, 3), {"offset": 2**70}, "are not in 'w.bin', which has 24"),
        ((2, 3), {"offset": 4}, "bytes 4 to 28 are not in"),
        ((2, 3), {"length": 20}, "has 24 bytes, and 20 bytes of external data"),
        ((2, 3), {"offset": -(2**70)}, "are not in"),
        ((2**40, 2**40), {}, "are not in"),
        ((-1, 3), {}, "cannot lie in another file"),
        ((2, 3), {"offset": "9" * 5000}, "external data 'w.bin'"),
        ((2, 3), {"kind": TensorProto.STRING}, "cannot lie in another file"),
        ((2, 3), {"kind": 999}, "cannot lie in another file"),
    ],
)
def test_ranges_outside_the_file_are_refused(tmp_path, sizes, entries, text):
    path = written(tmp_path, external("w", sizes, **entries))
    (tmp_path / "w.bin").write_bytes(W.tobytes())
    with pytest.raises(OnnxError, match=text):
        load(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names here")
def test_what_is_no_file_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "w.bin")
    with pytest.raises(OnnxError, match="are not in"):
        load(written(tmp_path, external("w", (2, 3))))


@pytest.mark.parametrize(
    "array",
    [
        np.array([[1.5, -2.0]], np.float64),
        np.array([True, False]),
        np.array(7, np.int64),
        np.zeros((0, 4), np.float32),
        np.array([1, 2.5], np.float16),
        np.array([1, 2.5], ml_dtypes.bfloat16),
        np.array([1, -3, 5], ml_dtypes.int4),
        np.array([1 + 2j], np.complex64),
    ],
    ids=lambda array: array.dtype.name,
)
def test_each_type_is_read_as_from_the_model(tmp_path, array):
    tensor = onnx.numpy_helper.from_array(array, "w")
    (tmp_path / "w.bin").write_bytes(bytes(4) + tensor.raw_data)
    outside = external("w", array.shape, kind=tensor.data_type, offset=4)
    one, other = load(model(tensor))(), load(written(tmp_path, outside))()
    if isinstance(one, convcore.Tensor):
        assert one.dtype == other.dtype
        one, other = one.to(convcore.complex128), other.to(convcore.complex128)
    np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


def test_weights_read_from_one_place_are_changed_apart(tmp_path):
    path = written(tmp_path, external("v", (2, 3)), external("w", (2, 3)))
    (tmp_path / "w.bin").write_bytes(W.tobytes())
    net = load(path)
    v, w = net.constants["v out"], net.constants["w out"]
    v.add_(1)
    assert w.tolist() == W.tolist()


def test_one_file_is_not_read_without_end(tmp_path):
    size = 1 << 20
    tensors = [external(f"w{k}", (size,)) for k in range(1000)]
    path = written(tmp_path, *tensors)
    (tmp_path / "w.bin").write_bytes(bytes(4 * size))
    with pytest.raises(OnnxError, match="1000 tensors of 4194304000 bytes in all refer to files"):
        load(path)
    net = load(written(tmp_path, *tensors[:8]))
    assert len(net()) == 8


_LARGE = """
import re, sys
import onnx
from convcore.onnx import load
net = load(sys.argv[1])
assert net.constants["w0 out"].shape == (1 << 20, 129)
# Not ru_maxrss, which begins with that of the process that started this one.
print(re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1])
"""


@pytest.mark.slow
@pytest.mark.subprocess
def test_more_than_2_gib_are_read_in_the_datas_memory(tmp_path):
    rows = 1 << 20
    n_bytes = rows * 129 * 4
    tensors = [external(f"w{k}", (rows, 129), offset=k * n_bytes) for k in range(4)]
    path = written(tmp_path, *tensors)
    with (tmp_path / "w.bin").open("wb") as file:
        file.truncate(4 * n_bytes)  # sparse
    done = subprocess.run(
        [sys.executable, "-P", "-c", _LARGE, path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) * 1024 < 4.3 * n_bytes + (300 << 20)
