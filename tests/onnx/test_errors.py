"""Errors of nodes name them, hooks' own errors stay; text of files is escaped, work is bounded."""

import contextlib
import re
import time
import warnings

import numpy as np
import pytest

import convcore
from convcore.cli import main

onnx = pytest.importorskip("onnx", reason="needs onnx: pip install 'convcore[onnx]'")
pytest.importorskip("onnx.backend.test")

from onnx import TensorProto, helper, numpy_helper, parser  # noqa: E402
from onnx_standard import cases_by_operator  # noqa: E402

from convcore.onnx import Backend, OnnxError, load  # noqa: E402

HEAD = '<ir_version: 8, opset_import: ["" : 17, "own" : 1]>'


def net_of(text):
    return load(parser.parse_model(f"{HEAD} {text}"))


def others(x):
    """Yield arrays in the place of one: of other shapes, types and values."""
    if not isinstance(x, np.ndarray) or x.dtype.kind not in "biuf":
        return
    yield x.reshape(-1)
    yield x[None]
    yield x[:0] if x.ndim else x.reshape(1, 1, 1)
    yield np.concatenate([x, x], -1) if x.ndim else x[None]
    with np.errstate(all="ignore"):
        yield x.astype(np.int64 if x.dtype.kind == "f" else np.float32)
    if x.dtype.kind in "iu" and x.dtype.itemsize == 8:
        yield np.full_like(x, np.iinfo(x.dtype).max)
        yield np.full_like(x, np.iinfo(x.dtype).min)
        yield np.full_like(x, 7)


@pytest.fixture(scope="module")
def cases():
    found = cases_by_operator()
    return [case for name in sorted(found) for case in found[name][:2]]


def test_every_operators_error_names_the_node(cases):
    wrong, n_errors = [], 0
    for case in cases:
        model = onnx.ModelProto()
        model.CopyFrom(case.model)
        model.graph.node[0].name = "the node"
        arrays = list(case.data_sets[0][0]) if case.data_sets else []
        for k, x in enumerate(arrays):
            is_limit = case.model.graph.node[0].op_type == "Loop" and k == 0  # of a number of steps
            for other in others(x) if not is_limit else ():
                try:
                    with warnings.catch_warnings(), np.errstate(all="ignore"):
                        warnings.simplefilter("ignore")
                        Backend.prepare(model).run([*arrays[:k], other, *arrays[k + 1 :]])
                except OnnxError as error:
                    n_errors += 1
                    if not re.search(r"[\w.]+ of opset \d+ in node ", str(error)):
                        wrong.append((case.name, k, str(error)))
                except Exception as error:
                    wrong.append((case.name, k, repr(error)))
    assert n_errors > 500
    assert wrong == []


def test_a_node_in_a_branch_is_named():
    net = net_of("""g (bool c, float[n] x) => (float[] y) { y = If (c) <
        then_branch = a () => (float[] r) { s = Neg (x) [inner] r = Add (x, x) },
        else_branch = b () => (float[] r) { z = Constant <value_ints = [3, 7]> ()
        [outer] r = Reshape (x, z) }> }""")
    with pytest.raises(OnnxError, match=r"^Reshape of opset 17 in node 'outer': shape '\[3, 7\]'"):
        net(convcore.tensor(False), convcore.ones(2))


def test_stop_iteration_does_not_end_a_callers_loop():
    node = helper.make_node("Unsqueeze", ["x", "axes"], ["y"])
    infos = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [2]),
        helper.make_tensor_value_info("y", TensorProto.FLOAT, None),
    ]
    axes = numpy_helper.from_array(np.array([0, 0]), "axes")
    graph = helper.make_graph([node], "g", infos[:1], infos[1:], [axes])
    net = load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]))
    with pytest.raises(OnnxError, match="have one axis twice"):
        list(map(net, [convcore.ones(2)] * 5))
    net.Unsqueeze_0.function = lambda *_, **__: next(iter(()))
    with pytest.raises(OnnxError, match="StopIteration"):
        list(map(net, [convcore.ones(2)] * 5))


@pytest.mark.parametrize("kind", [KeyError, RuntimeError, StopIteration, ValueError, Exception])
def test_what_hooks_raise_stays_as_it_is(kind):
    net = net_of("""g (bool c, float[n] x) => (float[n] y) { y = If (c) <
        then_branch = a () => (float[n] r) { r = Neg (x) },
        else_branch = b () => (float[n] r) { r = Relu (x) }> }""")
    own = kind("of a hook")

    def hook(*_):
        raise own

    for path in ("If_0", "If_0.then_branch", "If_0.then_branch.Neg_0"):
        handle = net.get_submodule(path).register_forward_hook(hook)
        with pytest.raises(kind) as caught:
            net(convcore.tensor(True), convcore.ones(2))
        assert caught.value is own
        handle.remove()
    assert net(convcore.tensor(True), convcore.ones(2)).tolist() == [-1, -1]


def test_a_node_that_needs_too_much_memory_is_named():
    net = net_of("g (int64[2] n) => (float[] y) { y = ConstantOfShape (n) }")
    with pytest.raises(OnnxError, match="ConstantOfShape of opset 17 in node") as caught:
        net(convcore.tensor([2**24, 2**22]))
    assert isinstance(caught.value, MemoryError)


HOSTILE = "a\x1b]0;title\x07\n\u202eb"


def hostile(n_dims):
    """Return a model all of whose names control a terminal."""
    body = [helper.make_node("Relu", ["a"], ["b"], HOSTILE)]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(HOSTILE, 1)]
    function = helper.make_function(HOSTILE, HOSTILE, ["a"], ["b"], body, opsets)
    nodes = [
        helper.make_node(HOSTILE, ["x"], ["h"], HOSTILE, domain=HOSTILE),
        helper.make_node("Add", ["h", "w"], [HOSTILE]),
    ]
    graph = helper.make_graph(
        nodes,
        HOSTILE,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [HOSTILE] * n_dims)],
        [helper.make_tensor_value_info(HOSTILE, TensorProto.FLOAT, [HOSTILE] * n_dims)],
        [numpy_helper.from_array(np.ones(2, np.float32), "w")],
    )
    return helper.make_model(graph, opset_imports=opsets, functions=[function], ir_version=8)


@pytest.mark.parametrize(
    "arguments",
    [
        ["summary"],
        ["summary", "--input", "1,2"],
        ["summary", "--input", "1,3"],
        ["run-model", "--input", "x.npy"],
        ["run-model", "--input", "y.npy"],
        ["inspect", "--input", "x.npy"],
    ],
    ids=" ".join,
)
def test_text_of_a_model_is_shown_escaped(tmp_path, monkeypatch, capsys, arguments):
    monkeypatch.chdir(tmp_path)
    onnx.save(hostile(2), "net.onnx")
    np.save("x.npy", np.ones((1, 2), np.float32))
    np.save("y.npy", np.ones((1, 3), np.float32))
    with contextlib.suppress(SystemExit):
        main([arguments[0], "net.onnx", *arguments[1:]])
    said = "".join(capsys.readouterr())
    if arguments[0] == "inspect":
        said = (tmp_path / "report.html").read_text("utf-8")
    assert "title" in said
    assert not set(said) & {"\x1b", "\x07", "\u202e"}, ascii(said)


def _spoil(model, change):
    model.graph.node[0].name = HOSTILE
    change(model)
    return model


SPOILT = {
    "an operator": lambda m: setattr(m.graph.node[0], "op_type", HOSTILE + "2"),
    "an opset": lambda m: setattr(m.opset_import[1], "version", -1),
    "an input": lambda m: m.graph.node[1].input.__setitem__(0, HOSTILE + "3"),
    "an output": lambda m: setattr(m.graph.output[0], "name", HOSTILE + "4"),
    "a constant": lambda m: (
        setattr(m.graph.initializer[0], "name", HOSTILE),
        m.graph.initializer[0].dims.append(9),
    ),
    "a file": lambda m: (
        setattr(m.graph.initializer[0], "name", HOSTILE),
        setattr(m.graph.initializer[0], "data_location", TensorProto.EXTERNAL),
        m.graph.initializer[0].external_data.add(key="location", value=HOSTILE),
    ),
}


@pytest.mark.parametrize("case", SPOILT)
def test_messages_of_load_are_printable(tmp_path, case):
    (tmp_path / "net.onnx").write_bytes(_spoil(hostile(1), SPOILT[case]).SerializeToString())
    with pytest.raises(OnnxError) as caught:
        load(tmp_path / "net.onnx")
    assert str(caught.value).isprintable()


def test_nets_and_their_state_have_printable_names():
    net = load(hostile(1))
    texts = [repr(net), str(net.state_dict().keys()), *dict(net.named_modules())]
    assert all(c.isprintable() or c == "\n" for text in texts for c in text)
    assert net(convcore.ones(2)).tolist() == [2, 2]


def test_a_message_is_not_as_long_as_a_name():
    model = hostile(1)
    model.graph.node[1].name = "n" * 10**6
    model.graph.node[1].input[0] = "v" * 10**6
    with pytest.raises(OnnxError) as caught:
        load(model)
    assert len(str(caught.value)) < 1000


# Names of nodes; each list is as long as a file of a few MB.
NAMES = {
    "one name": lambda k: "a",
    "no name": lambda k: "",
    "names of endings": lambda k: "a" if k % 2 else f"a_{k // 2}",
    "names that are endings of endings": lambda k: "a" + "_1" * (k % 3),
    "different names": lambda k: f"n{k}",
}


@pytest.mark.parametrize("names", NAMES)
def test_a_load_takes_a_time_linear_in_the_nodes(names):
    def seconds(n):
        nodes = [
            helper.make_node("Neg", [f"x{k}"], [f"x{k + 1}"], NAMES[names](k)) for k in range(n)
        ]
        graph = helper.make_graph(
            nodes,
            "g",
            [helper.make_tensor_value_info("x0", 1, [1])],
            [helper.make_tensor_value_info(f"x{n}", 1, [1])],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        begin = time.process_time()
        load(model)
        return time.process_time() - begin

    seconds(100)
    assert seconds(8000) < 16 * min(seconds(1000), seconds(1000)) + 0.2


def test_constants_fold_in_a_time_linear_in_the_nodes():
    def seconds(n):
        text = " ".join(f"k{i + 1} = Neg (k{i})" for i in range(n))
        ends = "g (float[1] x) => (float[1] y) <float[1] k0 = {1}>"
        model = parser.parse_model(f"{HEAD} {ends} {{ {text} y = Add (x, k{n}) }}")
        begin = time.process_time()
        load(model)
        return time.process_time() - begin

    seconds(100)
    assert seconds(8000) < 16 * min(seconds(1000), seconds(1000)) + 0.2
