"""Loaded nets are trained, written back into their own models, and exported as new ones."""

import copy
import errno
import io
import pickle

import numpy as np
import pytest

import convcore
from convcore import nn

onnx = pytest.importorskip("onnx", reason="needs onnx: pip install 'convcore[onnx]'")
pytest.importorskip("onnxruntime", reason="needs ONNX Runtime")

import onnx_round_trip as trips  # noqa: E402
from onnx import TensorProto, external_data_helper, helper, numpy_helper, parser  # noqa: E402

from convcore.onnx import OnnxError, export, load, save  # noqa: E402

PLAIN = """
g (float[n, 3, 8, 8] x) => (float[n, 5] y) {
    [conv] c = Conv <pads = [1, 1, 1, 1]> (x, w, b)
    [norm] n1 = BatchNormalization (c, scale, shift, mean, var)
    [act] r = Relu (n1)
    p = GlobalAveragePool (r)
    f = Flatten (p)
    [head] y = Gemm <transB = 1> (f, w2, b2)
}"""
PLAIN_WEIGHTS = {
    **{"w": (4, 3, 3, 3), "b": (4,), "scale": (4,), "shift": (4,), "mean": (4,), "var": (4,)},
    **{"w2": (5, 4), "b2": (5,)},
}
IMAGE = {"x": (2, 3, 8, 8)}
ROWS = {"x": (3, 4)}
STEPS = {"x": (5, 2, 3)}  # (time, N, features)

# Graph, shapes of the initializers, shapes of the inputs; what is trained, if not all.
FAMILIES = {
    "depthwise": (
        """g (float[n, 4, 8, 8] x) => (float[n, 4, h, v] y) {
            c = Conv <group = 4, pads = [0, 1, 1, 0], strides = [2, 2]> (x, w)
            d = Conv (c, v)
            y = HardSwish (d) }""",
        {"w": (4, 1, 3, 3), "v": (4, 4, 1, 1)},
        {"x": (2, 4, 8, 8)},
    ),
    "transposed convolution": (
        """g (float[n, 3, 4, 4] x) => (float[n, 2, h, v] y) {
            c = ConvTranspose <strides = [2, 2], pads = [1, 0, 0, 1]> (x, w, b)
            y = LeakyRelu (c) }""",
        {"w": (3, 2, 3, 3), "b": (2,)},
        {"x": (2, 3, 4, 4)},
    ),
    "Gemm of any kind": (
        """g (float[n, 4] x) => (float[n, 2] y) {
            a = Gemm <alpha = 0.5, beta = 2.0> (x, w, b)
            y = Gemm (a, v, m) }""",
        {"w": (4, 3), "b": (3,), "v": (3, 2), "m": (1, 2)},
        ROWS,
    ),
    "MatMul": (
        """g (float[n, 4] x) => (float[n, 2] y) {
            h = MatMul (x, w)
            s = Add (h, b)
            t = Tanh (s)
            k = Mul (t, scale)
            y = MatMul (k, v) }""",
        {"w": (4, 3), "b": (3,), "scale": (3,), "v": (3, 2)},
        ROWS,
    ),
    "norms": (
        """g (float[n, 4, 6, 6] x) => (float[n, 4, 6, 6] y) {
            a = InstanceNormalization (x, s1, b1)
            b = PRelu (a, slope)
            y = LayerNormalization <axis = -1> (b, s2, b2) }""",
        {"s1": (4,), "b1": (4,), "slope": (4, 1, 1), "s2": (6,), "b2": (6,)},
        {"x": (2, 4, 6, 6)},
    ),
    "LSTM": (
        """g (float[t, n, 3] x) => (float[t, 2, n, 4] y) {
            y = LSTM <hidden_size = 4, direction = "bidirectional"> (x, w, r, b) }""",
        {"w": (2, 16, 3), "r": (2, 16, 4), "b": (2, 32)},
        STEPS,
    ),
    "GRU": (
        """g (float[t, n, 3] x) => (float[t, 1, n, 4] y) {
            y = GRU <hidden_size = 4, linear_before_reset = 1> (x, w, r, b) }""",
        {"w": (1, 12, 3), "r": (1, 12, 4), "b": (1, 24)},
        STEPS,
    ),
    "weights that two nodes share": (
        """g (float[n, 4] x) => (float[n, 4] y) {
            a = Gemm <transB = 1> (x, w, b)
            r = Relu (a)
            y = Gemm <transB = 1> (r, w, b) }""",
        {"w": (4, 4), "b": (4,)},
        ROWS,
    ),
    "weights in nested branches": (
        """g (float[n, 4] x) => (float[n, 2] y) {
            h = MatMul (x, w)
            total = ReduceSum <keepdims = 0> (h)
            zero = Constant <value = float {-1000000.0}> ()
            yes = Greater (total, zero)
            y = If (yes) <
                then_branch = first () => (float[n, 2] a)
                    <float[4, 2] v = {1, 2, 3, 4, 5, 6, 7, 8}> {
                    k = If (yes) <
                        then_branch = one () => (float[n, 4] c)
                            <float[4] u = {1, -2, 3, 1}> { c = Mul (h, u) },
                        else_branch = two () => (float[n, 4] d) { d = Add (h, w3) }>
                    a = MatMul (k, v)
                },
                else_branch = second () => (float[n, 2] e) { e = MatMul (h, w2) }> }""",
        {"w": (4, 4), "w2": (4, 2), "w3": (4,)},
        ROWS,
    ),
    "weights in a loop": (
        """g (float[n, 4] x) => (float[n, 4] y) {
            count = Constant <value = int64 {3}> ()
            yes = Constant <value = bool {1}> ()
            y = Loop (count, yes, x) <
                body = step (int64 i, bool c, float[n, 4] s) => (bool d, float[n, 4] t)
                    <float[4] u = {1, -1, 0.5, 0.25}> {
                    d = Identity (c)
                    m = MatMul (s, w)
                    t = Mul (m, u) }> }""",
        {"w": (4, 4)},
        ROWS,
    ),
    "weights in constants": (
        """g (float[n, 4] x) => (float[n, 2] y) {
            [first] w = Constant <value = float[4, 2] {1, 2, 3, 4, 5, 6, 7, 8}> ()
            [second] b = Constant <value_floats = [1.0, 2.0]> ()
            h = MatMul (x, w)
            y = Add (h, b) }""",
        {},
        ROWS,
    ),
    "weights that are rearranged": (
        """g (float[n, 4] x) => (float[n, 2] y) {
            wt = Transpose <perm = [1, 0]> (w)
            shape = Constant <value = int64[2] {4, -1}> ()
            v = Reshape (long, shape)
            all = Concat <axis = 0> (left, wt, v)
            begin = Constant <value = int64[1] {0}> ()
            end = Constant <value = int64[1] {11}> ()
            part = Slice (all, begin, end, begin)
            h = Gemm <transB = 1> (x, part)
            flat = Flatten <axis = 0> (b)
            h2 = Add (h, flat)
            y = MatMul (h2, out) }""",
        {"w": (4, 3), "long": (16,), "left": (4, 4), "b": (11,), "out": (11, 2)},
        ROWS,
    ),
    "embeddings": (
        """g (int64[n, 3] i) => (float[n, 3, 4] y) {
            e = Gather (table, i)
            y = MatMul (e, w) }""",
        {"table": (6, 5), "w": (5, 4)},
        {"i": None},
    ),
    "inputs with defaults": (
        """g (float[n, 4] x, float[4, 2] w) => (float[n, 2] y) {
            y = MatMul (x, w) }""",
        {"w": (4, 2)},
        ROWS,
    ),
}


def arrays_of(shapes, rng, dtype=np.float32):
    return {
        name: (rng.random(shape) + 0.5 if name == "var" else rng.standard_normal(shape) / 2).astype(
            dtype
        )
        for name, shape in shapes.items()
    }


def model_of(text, arrays, opset=17, ir_version=9):
    graph = parser.parse_graph(text)
    for name, array in arrays.items():
        graph.initializer.append(
            array
            if isinstance(array, TensorProto)
            else numpy_helper.from_array(np.asarray(array), name)
        )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir_version
    )
    model.doc_string, model.producer_name = "about this model", "a producer"
    model.metadata_props.add(key="classes", value="cat, dog")
    for node in graph.node:
        node.doc_string = "about this node"
    return model


def inputs_of(shapes, rng):
    return {
        name: rng.integers(0, 6, (2, 3)) if shape is None else arrays_of({name: shape}, rng)[name]
        for name, shape in shapes.items()
    }


def file_of(model, folder, name="net.onnx"):
    (folder / "source").mkdir(exist_ok=True)
    path = folder / "source" / name
    path.write_bytes(model.SerializeToString())
    return path


def plain(rng, **options):
    return model_of(PLAIN, arrays_of(PLAIN_WEIGHTS, rng), **options)


def fill(tensor, number):
    with convcore.no_grad():
        tensor.fill_(number)


def stored(path):
    return {each.name: each for each in onnx.load(path).graph.initializer}


@pytest.mark.parametrize("opset", range(7, 24))
def test_a_net_of_each_opset_is_tuned_and_written_back(opset, tmp_path, rng):
    path = file_of(plain(rng, opset=opset), tmp_path)
    *_, changed = trips.round_trip(path, inputs_of(IMAGE, rng), tmp_path, frozen=("norm.bias",))
    assert changed == {"w", "b", "scale", "w2", "b2"}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_net_of_each_family_is_tuned_and_written_back(family, tmp_path, rng):
    text, shapes, inputs = FAMILIES[family]
    path = file_of(model_of(text, arrays_of(shapes, rng)), tmp_path)
    *_, changed = trips.round_trip(path, inputs_of(inputs, rng), tmp_path)
    assert set(shapes) - {"w2", "w3"} <= changed  # these are in branches that are not taken


def test_statistics_of_batch_norms_in_training_mode_are_written(tmp_path, rng):
    path = file_of(plain(rng), tmp_path)
    net, inputs = load(path), inputs_of(IMAGE, rng)
    net.train()
    trips.train(net, inputs)
    save(net.eval(), tmp_path / "net.onnx")
    found = trips.by_runtime(tmp_path / "net.onnx", inputs)
    assert trips.distance(trips.by_net(net, inputs), found) < 1e-4
    assert {"mean", "var"} <= trips.changed_tensors(path, tmp_path / "net.onnx")


def test_an_unchanged_net_gives_the_same_model(tmp_path, rng):
    model = plain(rng)
    net = load(model)
    save(net, tmp_path / "net.onnx")
    assert onnx.load(tmp_path / "net.onnx") == model
    model.graph.node[0].op_type = "Sin"  # the caller may change the model
    save(net, tmp_path / "net.onnx")
    assert onnx.load(tmp_path / "net.onnx") != model


@pytest.mark.parametrize("kind", ["FLOAT", "DOUBLE", "FLOAT16", "BFLOAT16"])
@pytest.mark.parametrize("is_raw", [False, True])
def test_numbers_are_stored_in_the_way_in_which_they_were(kind, is_raw, tmp_path):
    code = getattr(TensorProto, kind)
    array = np.arange(4).reshape(2, 2).astype(helper.tensor_dtype_to_np_dtype(code))
    tensor = numpy_helper.from_array(array, "w")
    if not is_raw:
        tensor = helper.make_tensor("w", code, (2, 2), array.reshape(-1))
    text = f"g ({kind.lower()}[n, 2] x) => ({kind.lower()}[n, 2] y) {{ y = MatMul (x, w) }}"
    path = file_of(model_of(text, {"w": tensor}), tmp_path)
    net = load(path)
    fill(net.MatMul_0.B, 1.5)
    save(net, tmp_path / "net.onnx")
    assert trips.changed_tensors(path, tmp_path / "net.onnx") == {"w"}
    assert numpy_helper.to_array(stored(tmp_path / "net.onnx")["w"]).tolist() == [[1.5, 1.5]] * 2


def test_weights_in_float16_for_a_net_in_float32_are_rounded(tmp_path, rng):
    text = """g (float[n, 4] x) => (float[n, 2] y) {
        v = Cast <to = 1> (w)
        y = MatMul (x, v) }"""
    path = file_of(model_of(text, arrays_of({"w": (4, 2)}, rng, np.float16)), tmp_path)
    net = load(path)
    fill(net.MatMul_0.B, 1 / 3)
    save(net, tmp_path / "net.onnx")
    assert trips.changed_tensors(path, tmp_path / "net.onnx") == {"w"}
    assert load(tmp_path / "net.onnx").MatMul_0.B[0, 0].item() == np.float16(1 / 3)
    fill(net.MatMul_0.B, 1e6)
    with pytest.raises(OnnxError, match=r"cannot hold MatMul_0.B as it is now.*'w'"):
        save(net, tmp_path / "net.onnx")


def test_weights_of_a_function_are_written(tmp_path):
    model = parser.parse_model("""
        <ir_version: 9, opset_import: ["" : 17, "own" : 1]>
        g (float[n, 2] x) => (float[n, 2] y) { y = own.f <k = float[2] {1, 2}> (x) }
        <opset_import: ["" : 17], domain: "own">
        f <k> (x) => (y) {
            w = Constant <value: tensor = @k> ()
            v = Constant <value = float[2] {3, 4}> ()
            h = Mul (x, w)
            y = Add (h, v) }""")
    path = file_of(model, tmp_path)
    net = load(path)
    assert len(list(net.parameters())) == 2
    for number, parameter in enumerate(net.parameters()):
        fill(parameter, 7 + number)
    save(net, tmp_path / "net.onnx")
    again = load(tmp_path / "net.onnx")
    assert [each.tolist() for each in again.parameters()] == [[7, 7], [8, 8]]


def test_a_weight_that_is_rearranged_twice_alike_is_one_parameter(tmp_path):
    """As in exported LSTMs whose branches reorder the same gates."""
    text = """g (float[n, 2] x, bool yes) => (float[n, 2] y) {
        y = If (yes) <
            then_branch = one () => (float[n, 2] a) {
                i = Constant <value = int64[2] {1, 0}> ()
                k = Gather <axis = 1> (w, i)
                v = Transpose (k)
                a = MatMul (x, v)
            },
            else_branch = two () => (float[n, 2] b) {
                j = Constant <value = int64[2] {1, 0}> ()
                l = Gather <axis = 1> (w, j)
                t = Transpose (l)
                m = MatMul (x, t)
                b = Neg (m) }> }"""
    net = load(file_of(model_of(text, {"w": np.eye(2, dtype=np.float32)}), tmp_path))
    (weight,) = net.parameters()
    with convcore.no_grad():
        weight.copy_(convcore.tensor([[1.0, 2.0], [3.0, 4.0]]))
    save(net, tmp_path / "net.onnx")
    assert load(tmp_path / "net.onnx").If_0.else_branch.MatMul_0.B.equal(weight)
    assert numpy_helper.to_array(stored(tmp_path / "net.onnx")["w"]).tolist() == [[3, 1], [4, 2]]


def test_a_weight_of_a_function_is_one_parameter_in_all_its_calls(tmp_path):
    model = parser.parse_model("""
        <ir_version: 9, opset_import: ["" : 17, "own" : 1]>
        g (float[n, 2] x) => (float[n, 2] y) { h = own.f (x) y = own.f (h) }
        <opset_import: ["" : 17], domain: "own">
        f (x) => (y) {
            w = Constant <value = float[2] {1, 2}> ()
            y = Mul (x, w) }""")
    net = load(model)
    (weight,) = net.parameters()
    net(convcore.ones(1, 2)).sum().backward()
    assert weight.grad.tolist() == [2, 4]
    fill(weight, 3)
    save(net, tmp_path / "net.onnx")
    assert load(tmp_path / "net.onnx")(convcore.ones(1, 2)).tolist() == [[9, 9]]


def test_external_data_keep_their_places(tmp_path, rng):
    arrays = arrays_of(PLAIN_WEIGHTS, rng)
    model = model_of(PLAIN, arrays)
    (tmp_path / "source" / "data").mkdir(parents=True)
    path = tmp_path / "source" / "net.onnx"
    for place, names in (("data/a.bin", ("w", "scale")), ("b.bin", ("b", "w2", "mean"))):
        with open(tmp_path / "source" / place, "wb") as file:
            for each in model.graph.initializer:
                if each.name in names:
                    file.write(b"between")
                    external_data_helper.set_external_data(
                        each, place, file.tell(), len(each.raw_data), "a checksum"
                    )
                    file.write(each.raw_data)
                    each.ClearField("raw_data")
            file.write(b"the end")
    path.write_bytes(model.SerializeToString())
    inputs = inputs_of(IMAGE, rng)
    *_, changed = trips.round_trip(path, inputs, tmp_path, frozen=("conv.weight", "norm.weight"))
    assert changed == {"b", "shift", "w2", "b2"}
    files = sorted(each.relative_to(tmp_path).as_posix() for each in tmp_path.rglob("*.bin"))
    assert files == ["b.bin", "data/a.bin", "source/b.bin", "source/data/a.bin"]
    checksums = [
        each.key
        for t in onnx.load(tmp_path / "net.onnx", load_external_data=False).graph.initializer
        for each in t.external_data
        if each.key == "checksum"
    ]
    assert len(checksums) == 2  # of the file that has not changed
    assert (tmp_path / "data/a.bin").read_bytes() == (path.parent / "data/a.bin").read_bytes()
    new, old = (tmp_path / "b.bin").read_bytes(), (path.parent / "b.bin").read_bytes()
    assert new != old
    assert new.count(b"between") == 3 and new.endswith(b"the end") and len(new) == len(old)


@pytest.fixture
def net_with_data(tmp_path, rng):
    """Return the path of a model whose weights lie beside it."""
    path = tmp_path / "net.onnx"
    onnx.save_model(
        plain(rng), path, save_as_external_data=True, location="w.bin", size_threshold=0
    )
    return path


def test_a_model_beside_its_source_has_data_of_its_own(net_with_data, tmp_path, rng):
    before = (tmp_path / "w.bin").read_bytes()
    net = load(net_with_data)
    save(net, tmp_path / "same.onnx")  # nothing has changed: the file is that of both
    assert sorted(each.name for each in tmp_path.iterdir()) == ["net.onnx", "same.onnx", "w.bin"]
    for number in (2, 3):
        fill(net.conv.weight, number)
        save(net, tmp_path / "tuned.onnx")
        assert (tmp_path / "w.bin").read_bytes() == before
        assert load(tmp_path / "tuned.onnx").conv.weight.eq(number).all()
    assert (tmp_path / "tuned.onnx.data").exists()
    assert len(list(tmp_path.iterdir())) == 5


def test_a_model_is_written_to_its_own_place_again_and_again(net_with_data, tmp_path):
    net = load(net_with_data)
    for number in (2, 3):
        fill(net.conv.weight, number)
        fill(net.head.bias, number)
        save(net, net_with_data)
        again = load(net_with_data)
        assert again.conv.weight.eq(number).all() and again.head.bias.eq(number).all()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["net.onnx", "w.bin"]


def test_data_of_another_model_stay(net_with_data, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "w.bin").write_bytes(b"of another")
    net = load(net_with_data)
    save(net, tmp_path / "out" / "net.onnx")
    assert (tmp_path / "out" / "w.bin").read_bytes() == b"of another"
    assert load(tmp_path / "out" / "net.onnx").conv.weight.equal(net.conv.weight)
    with pytest.raises(TypeError, match="must be a path, for external_data"):
        save(net, io.BytesIO())


def test_locations_never_lead_out_of_the_new_folder(tmp_path, rng):
    (tmp_path / "source").mkdir()
    path = tmp_path / "source" / "net.onnx"
    onnx.save_model(
        plain(rng), path, save_as_external_data=True, location="w.bin", size_threshold=0
    )
    model = onnx.load(path, load_external_data=False)
    for each in model.graph.initializer:
        each.external_data[0].value = "../source/w.bin"
    path.write_bytes(model.SerializeToString())
    (tmp_path / "out").mkdir()
    net = load(path)
    fill(net.conv.weight, 2)
    save(net, tmp_path / "out" / "net.onnx")
    assert {each.name for each in (tmp_path / "out").iterdir()} == {"net.onnx", "net.onnx.data"}
    assert load(tmp_path / "out" / "net.onnx").conv.weight.eq(2).all()


def test_data_that_tensors_share_in_part_are_refused_if_they_differ(tmp_path):
    (tmp_path / "w.bin").write_bytes(np.arange(6, dtype=np.float32).tobytes())
    tensors = {}
    for name, offset in (("a", 0), ("b", 8)):
        tensor = TensorProto(name=name, dims=[4], data_type=TensorProto.FLOAT)
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in {"location": "w.bin", "offset": offset, "length": 16}.items():
            tensor.external_data.add(key=key, value=str(value))
        tensors[name] = tensor
    text = "g (float[4] x) => (float[4] y) { h = Mul (x, a) y = Add (h, b) }"
    (tmp_path / "net.onnx").write_bytes(model_of(text, tensors).SerializeToString())
    net = load(tmp_path / "net.onnx")
    fill(net.Mul_0.B, 9)
    with pytest.raises(OnnxError, match=r"cannot hold Add_0.B as it is now: initializer 'b'"):
        save(net, tmp_path / "net.onnx")
    with convcore.no_grad():
        net.Add_0.B[:2] = 9
    save(net, tmp_path / "net.onnx")
    assert load(tmp_path / "net.onnx").Add_0.B.tolist() == [9, 9, 4, 5]


# Refusals

TIED = """g (float[n, 4] x) => (float[n, 4] y) {
    h = MatMul (x, w)
    t = Transpose (w)
    y = MatMul (h, t) }"""


def test_a_weight_that_is_used_in_two_ways_is_refused_where_both_differ(tmp_path, rng):
    path = file_of(model_of(TIED, arrays_of({"w": (4, 4)}, rng)), tmp_path)
    net = load(path)
    new = convcore.arange(16.0).reshape(4, 4)
    net.MatMul_0.B = nn.Parameter(new)
    with pytest.raises(OnnxError, match=r"cannot hold MatMul_1.B as it is now: initializer 'w'"):
        save(net, tmp_path / "net.onnx")
    assert not (tmp_path / "net.onnx").exists()
    net.MatMul_1.B = nn.Parameter(new.t().clone())
    save(net, tmp_path / "net.onnx")
    assert load(tmp_path / "net.onnx").MatMul_1.B.equal(new.t())


def test_statistics_that_two_norms_share_are_refused_where_they_differ(tmp_path, rng):
    text = """g (float[n, 3, 8, 8] x) => (float[n, 3, 8, 8] y) {
        h = BatchNormalization (x, s, b, mean, var)
        r = Relu (h)
        y = BatchNormalization (r, s, b, mean, var) }"""
    shapes = dict.fromkeys(("s", "b", "mean", "var"), (3,))
    net = load(file_of(model_of(text, arrays_of(shapes, rng)), tmp_path))
    net.train()
    net(convcore.rand(2, 3, 8, 8))
    with pytest.raises(OnnxError, match=r"cannot hold BatchNormalization_0.running_mean.*'mean'"):
        save(net, tmp_path / "net.onnx")


@pytest.mark.parametrize(
    ("text", "arrays", "label"),
    [
        (
            """g (float[n, 2] x) => (float[n, 2] y) {
                v = DequantizeLinear (w, scale)
                y = MatMul (x, v) }""",
            {"w": np.ones((2, 2), np.int8), "scale": np.float32(0.1)},
            "initializer 'w', initializer 'scale'",
        ),
        (
            """g (float[n, 2] x) => (float[n, 2] y) {
                two = Constant <value_float = 2.0> ()
                v = Mul (w, two)
                y = MatMul (x, v) }""",
            {"w": np.ones((2, 2), np.float32)},
            "initializer 'w', Constant 'two'",
        ),
        (
            """g (float[n, 2] x) => (float[n, 2] y) {
                v = Cast <to = 1> (w)
                y = MatMul (x, v) }""",
            {"w": np.ones((2, 2), np.int32)},
            "initializer 'w'",
        ),
    ],
)
def test_weights_that_were_computed_are_refused_by_the_initializer(text, arrays, label, tmp_path):
    net = load(file_of(model_of(text, arrays), tmp_path))
    save(net, tmp_path / "net.onnx")  # as they were
    fill(net.MatMul_0.B, 5)
    with pytest.raises(OnnxError, match=f"MatMul_0.B as it is now: it was computed from {label}"):
        save(net, tmp_path / "out.onnx")
    assert not (tmp_path / "out.onnx").exists()


def test_a_constant_that_was_computed_from_a_trained_weight_is_refused(tmp_path):
    text = """g (float[2] x) => (float[2] y) {
        h = Mul (x, w)
        v = Neg (w)
        m = Max (h, v)
        y = Identity (m) }"""
    net = load(file_of(model_of(text, {"w": np.ones(2, np.float32)}), tmp_path))
    fill(net.Mul_0.B, 5)
    with pytest.raises(OnnxError, match="'w'"):
        save(net, tmp_path / "out.onnx")


def test_other_dtypes_and_shapes_are_refused(tmp_path, rng):
    path = file_of(plain(rng), tmp_path)
    with pytest.raises(OnnxError, match=r"conv.weight is float64\[4, 3, 3, 3\].*initializer 'w'"):
        save(load(path).double(), tmp_path / "net.onnx")
    net = load(path)
    net.head.weight = nn.Parameter(convcore.zeros(7, 4))
    with pytest.raises(OnnxError, match=r"head.weight is float32\[7, 4\], the file has .*'w2'"):
        save(net, tmp_path / "net.onnx")


def test_other_modules_are_refused_with_a_hint(tmp_path, rng):
    net = load(plain(rng))
    net.head = nn.Linear(4, 5)
    with pytest.raises(OnnxError, match="node 'head' was replaced by Linear") as caught:
        save(net, tmp_path / "net.onnx")
    assert "convcore.onnx.export" in str(caught.value)
    for other in (nn.Linear(2, 2), nn.Sequential(net), convcore.optimize_for_inference(net)):
        with pytest.raises(TypeError, match=r"must be made by convcore.onnx.load") as caught:
            save(other, tmp_path / "net.onnx")
        assert "convcore.onnx.export" in str(caught.value)


def test_a_file_that_has_changed_is_refused(tmp_path, rng):
    path = file_of(plain(rng), tmp_path)
    net = load(path)
    path.write_bytes(plain(rng).SerializeToString())
    with pytest.raises(OnnxError, match="has changed since the net was loaded"):
        save(net, tmp_path / "net.onnx")
    path.unlink()
    with pytest.raises(FileNotFoundError):
        save(net, tmp_path / "net.onnx")


def test_parametrized_weights_are_written_as_they_are_computed(tmp_path, rng):
    net = load(plain(rng))
    nn.utils.parametrizations.weight_norm(net.head)
    fill(net.head.parametrizations.weight.original0, 2)
    save(net, tmp_path / "net.onnx")
    norms = load(tmp_path / "net.onnx").head.weight.norm(dim=1)
    convcore.testing.assert_close(norms, convcore.full((5,), 2.0))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))])
def test_copies_are_written_too(copied, tmp_path, rng):
    for model in (plain(rng), plain(rng).SerializeToString(), file_of(plain(rng), tmp_path)):
        net = copied(load(model))
        fill(net.conv.weight, 2)
        save(net, tmp_path / "net.onnx")
        assert load(tmp_path / "net.onnx").conv.weight.eq(2).all()


def test_an_interrupted_save_leaves_the_old_file(tmp_path, rng, monkeypatch):
    net = load(plain(rng))
    save(net, tmp_path / "net.onnx")
    before = (tmp_path / "net.onnx").read_bytes()
    fill(net.conv.weight, 2)
    with monkeypatch.context() as patched, pytest.raises(OSError, match="no more"):
        patched.setattr("os.fsync", _full)
        save(net, tmp_path / "net.onnx")
    assert (tmp_path / "net.onnx").read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["net.onnx"]


def _full(descriptor):
    raise OSError(errno.ENOSPC, "no more space")


# New models


def check_export(net, inputs, folder, **options):
    """Export a net for inputs, and compare with ONNX Runtime; return the program."""
    given = {name: convcore.from_numpy(array) for name, array in inputs.items()}
    program = export(net, (), folder / "new.onnx", kwargs=given, **options)
    found = trips.by_runtime(folder / "new.onnx", inputs)
    assert trips.distance(trips.by_net(net, inputs), found) < 1e-5
    return program


@pytest.mark.parametrize("family", sorted(FAMILIES.keys() - {"weights in nested branches"}))
def test_a_loaded_net_of_each_family_is_exported(family, tmp_path, rng):
    text, shapes, inputs = FAMILIES[family]
    net = load(model_of(text, arrays_of(shapes, rng)))
    for parameter in net.parameters():
        fill(parameter, 0.25)
    check_export(net, inputs_of(inputs, rng), tmp_path)


def test_branches_that_values_choose_are_refused(tmp_path, rng):
    text, shapes, inputs = FAMILIES["weights in nested branches"]
    net = load(model_of(text, arrays_of(shapes, rng)))
    with pytest.raises(OnnxError, match="it reads values that depend on the input"):
        check_export(net, inputs_of(inputs, rng), tmp_path)


OLD = {
    7: """g (float[n, 3, 4, 4] x) => (float[n, 3] y) {
        u = Upsample <mode = "nearest", scales = [1.0, 1.0, 2.0, 2.0]> (x)
        p = Pad <pads = [0, 0, 1, 1, 0, 0, 1, 1], value = 0.5> (u)
        s = Slice <axes = [2, 3], starts = [1, 1], ends = [-1, 9]> (p)
        c = Clip <min = -0.5, max = 0.5> (s)
        r = ReduceMean <axes = [2, 3], keepdims = 1> (c)
        q = Squeeze <axes = [2, 3]> (r)
        e = Unsqueeze <axes = [2]> (q)
        t = Softmax <axis = 1> (e)
        f = Flatten (t)
        y, k = TopK <k = 3> (f) }""",
    11: """g (float[n, 3, 4, 4] x) => (float[n, 2, k] y) {
        none = Constant <value = float[0] {}> ()
        twice = Constant <value = float[4] {1, 1, 2, 2}> ()
        u = Resize <mode = "linear", coordinate_transformation_mode = "half_pixel"> (x, none, twice)
        a, b = Split <axis = 1, split = [1, 2]> (u)
        n0 = HardSigmoid (b)
        s = ReduceSum <axes = [3], keepdims = 0> (n0)
        y = LogSoftmax <axis = 2> (s) }""",
}


@pytest.mark.parametrize("opset", [None, 13, 17, 23])
@pytest.mark.parametrize("old", OLD)
def test_nodes_of_old_opsets_are_written_in_another(old, opset, tmp_path, rng):
    net = load(model_of(OLD[old], {}, opset=old))
    inputs = inputs_of({"x": (2, 3, 4, 4)}, rng)
    program = check_export(net, inputs, tmp_path, opset_version=opset)
    assert program.model_proto.opset_import[0].version == (opset or 17)


def test_free_axes_of_loaded_nets_stay_free(tmp_path, rng):
    text = """g (float[n, 3, 8, 8] x) => (float[n, k] y) {
        sizes = Shape <end = 1> (x)
        rest = Constant <value = int64[1] {-1}> ()
        shape = Concat <axis = 0> (sizes, rest)
        h = Reshape (x, shape)
        s = Softplus (h)
        y = Mul (s, w) }"""
    net = load(model_of(text, {"w": np.float32([3])}, opset=19))
    program = check_export(net, inputs_of(IMAGE, rng), tmp_path, dynamic_shapes={"x": {0: "batch"}})
    assert program.model_proto.opset_import[0].version == 19
    assert "x float32[batch, 3, 8, 8] -> y float32[batch, " in repr(program)
    assert "x float32[2, 3, 8, 8] -> y float32[2, " in repr(
        export(net, (convcore.rand(2, 3, 8, 8),))
    )
    more = convcore.rand(5, 3, 8, 8)
    convcore.testing.assert_close(program(x=more)[0], net(more))


def test_a_loaded_net_with_a_new_head_is_exported(tmp_path, rng):
    net = load(plain(rng))
    net.head = nn.Linear(4, 7)
    check_export(net, inputs_of(IMAGE, rng), tmp_path)
    longer = nn.Sequential(net, nn.Softmax(1))
    program = export(longer, (convcore.from_numpy(inputs_of(IMAGE, rng)["x"]),))
    assert [each.op_type for each in program.model_proto.graph.node][-2:] == ["Softmax", "Identity"]


def test_sequences_are_refused_by_their_node(tmp_path, rng):
    text = """g (float[n, 4] x) => (float[n, 2] y) {
        i = Constant <value = int64 {1}> ()
        [parts] s = SplitToSequence <axis = 1, keepdims = 0> (x)
        y = SequenceAt (s, i) }"""
    with pytest.raises(OnnxError, match="SplitToSequence of opset 17 in node 'parts' takes or"):
        check_export(load(model_of(text, {})), inputs_of(ROWS, rng), tmp_path)


def test_random_numbers_of_loaded_nets_are_drawn_by_the_model(tmp_path, rng):
    text = """g (float[2, 4] x) => (float[2, 4] y) {
        r = RandomNormal <shape = [2, 4]> ()
        y = Add (x, r) }"""
    program = export(load(model_of(text, {})), (convcore.zeros(2, 4),))
    assert program.model_proto.graph.node[0].op_type == "RandomNormal"
    assert not program(convcore.zeros(2, 4))[0].equal(program(convcore.zeros(2, 4))[0])
