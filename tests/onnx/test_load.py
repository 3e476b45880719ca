"""Nets that are loaded from ONNX: names, hooks, gradients, fused inference, refusals."""

import copy
import pickle

import numpy as np
import pytest
from onnx_nets import session_of

import convcore
from convcore import nn

onnx = pytest.importorskip("onnx", reason="needs onnx: pip install 'convcore[onnx]'")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402

from convcore.onnx import OnnxError, export, load  # noqa: E402


def info(name, *sizes, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, sizes)


def model_of(nodes, inputs, outputs, weights=(), opset=17, functions=()):
    graph = helper.make_graph(
        nodes,
        "graph",
        inputs,
        outputs,
        [numpy_helper.from_array(array, name) for name, array in dict(weights).items()],
    )
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("own", 1)]
    return helper.make_model(graph, opset_imports=opsets, functions=functions)


@pytest.fixture
def weights(rng):
    shapes = {"w1": (4, 3, 3, 3), "b1": (4,), "scale": (4,), "shift": (4,), "mean": (4,)}
    arrays = {name: rng.standard_normal(shape, dtype=np.float32) for name, shape in shapes.items()}
    arrays["var"] = rng.random(4, dtype=np.float32) + 0.5
    arrays["w2"] = rng.standard_normal((5, 4), dtype=np.float32)
    arrays["b2"] = rng.standard_normal(5, dtype=np.float32)
    return arrays


@pytest.fixture
def proto(weights):
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["c"], "first.conv", pads=[1, 1, 1, 1]),
        helper.make_node(
            "BatchNormalization", ["c", "scale", "shift", "mean", "var"], ["n"], "norm"
        ),
        helper.make_node("Relu", ["n"], ["r"]),
        helper.make_node("GlobalAveragePool", ["r"], ["p"], "norm"),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("Gemm", ["f", "w2", "b2"], ["y"], transB=1),
    ]
    return model_of(nodes, [info("x", "n", 3, "h", "w")], [info("y", "n", 5)], weights)


def twin(weights):
    """Return the same net, made of layers."""
    net = nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(4, 5),
    ).eval()
    names = ["0.weight", "0.bias", "1.weight", "1.bias", "1.running_mean", "1.running_var"]
    state = dict(zip([*names, "5.weight", "5.bias"], weights.values(), strict=True))
    net.load_state_dict({k: convcore.tensor(v) for k, v in state.items()}, strict=False)
    return net


def test_nodes_are_submodules_under_their_names(proto):
    names = [name for name, _ in load(proto).named_children()]
    assert names == ["first_conv", "norm", "Relu_0", "norm_1", "Flatten_0", "Gemm_0"]
    assert load(proto).get_submodule("first_conv").onnx_name == "first.conv"
    assert "onnx_name='first.conv'" in repr(load(proto))


def test_a_node_may_have_the_name_of_a_method():
    nodes = [helper.make_node("Relu", ["x"], ["y"], "forward")]
    net = load(model_of(nodes, [info("x", 2)], [info("y", 2)]))
    assert [name for name, _ in net.named_children()] == ["forward_1"]
    assert net(convcore.tensor([-1.0, 1.0])).tolist() == [0.0, 1.0]


def test_weights_are_parameters_of_their_nodes(proto):
    net = load(proto)
    assert {name for name, _ in net.named_parameters()} == {
        *("first_conv.weight", "first_conv.bias", "norm.weight", "norm.bias"),
        *("Gemm_0.weight", "Gemm_0.bias"),
    }
    assert {name for name, _ in net.named_buffers()} >= {"norm.running_mean", "norm.running_var"}


def test_results_and_gradients_are_those_of_the_same_net_of_layers(proto, weights, rng):
    net, other = load(proto), twin(weights)
    x = convcore.tensor(rng.standard_normal((2, 3, 6, 5), dtype=np.float32))
    results = []
    for each in (net, other):
        y = each(x)
        y.square().sum().backward()
        results.append([y, *(p.grad for p in each.parameters())])
    for a, b in zip(*results, strict=True):
        convcore.testing.assert_close(a, b)


def test_hooks_fire_once_a_node_and_in_order(proto, rng):
    net, seen = load(proto), []
    for name, module in net.named_children():
        module.register_forward_hook(lambda *_, name=name: seen.append(name))
        module.register_full_backward_hook(lambda *_, name=name: seen.append(f"-{name}"))
    x = convcore.tensor(rng.standard_normal((1, 3, 4, 4), dtype=np.float32), requires_grad=True)
    net(x).sum().backward()
    names = [name for name, _ in net.named_children()]
    assert seen == [*names, *(f"-{name}" for name in reversed(names))]


def test_fused_inference_agrees(proto, rng):
    x = convcore.tensor(rng.standard_normal((2, 3, 9, 9), dtype=np.float32))
    net = load(proto)
    fast = convcore.optimize_for_inference(net, x)
    assert type(fast.model.get_submodule("first_conv")).__name__ == "PrepackedConv"
    assert type(fast.model.norm).__name__ == "Folded"
    with convcore.no_grad():
        expected = net(x)
    for _ in range(2):
        convcore.testing.assert_close(fast(x), expected, rtol=1e-4, atol=1e-5)


def test_inputs_are_taken_in_order_by_name_and_as_arrays():
    nodes = [helper.make_node("Sub", ["a:0", "b"], ["y"])]
    net = load(model_of(nodes, [info("a:0", 2), info("b", 2)], [info("y", 2)]))
    a, b = convcore.tensor([3.0, 4.0]), convcore.tensor([1.0, 1.0])
    assert net(a, b).tolist() == net(b=b, a_0=a).tolist() == [2.0, 3.0]
    assert net(a.numpy(), b=b.numpy()).tolist() == [2.0, 3.0]
    with pytest.raises(TypeError, match=r"missing inputs \['b'\]"):
        net(a)
    with pytest.raises(TypeError, match="input 'c' is unknown"):
        net(a, c=b)
    with pytest.raises(TypeError, match="input 'a_0' is given twice"):
        net(a, a_0=b)
    with pytest.raises(TypeError, match="got 3"):
        net(a, b, b)


def test_dropout_drops_in_training_mode_alone():
    nodes = [helper.make_node("Dropout", ["x"], ["y"])]
    net, x = load(model_of(nodes, [info("x", 1000)], [info("y", 1000)])), convcore.ones(1000)
    assert net(x).equal(x)
    assert set(net.train()(x).tolist()) == {0.0, 2.0}


def test_a_shared_weight_is_one_parameter(rng):
    w = rng.standard_normal((3, 3), dtype=np.float32)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("MatMul", ["h", "w"], ["y"]),
    ]
    net = load(model_of(nodes, [info("x", 2, 3)], [info("y", 2, 3)], {"w": w}))
    assert net.MatMul_0.B is net.MatMul_1.B
    assert len(list(net.parameters())) == 1


@pytest.mark.parametrize("layer", [nn.Linear(4, 3), nn.BatchNorm1d(4)])
def test_weights_in_bfloat16_are_read(layer, rng):
    pytest.importorskip("ml_dtypes")
    layer = layer.eval().to(convcore.bfloat16)
    x = convcore.tensor(rng.standard_normal((2, 4), dtype=np.float32)).to(convcore.bfloat16)
    loaded = load(export(layer, x).model_proto)
    assert loaded(x).equal(layer(x))


def test_constants_are_folded(rng):
    nodes = [
        helper.make_node("Transpose", ["w"], ["wt"]),
        helper.make_node("Identity", ["wt"], ["same"]),
        helper.make_node("MatMul", ["x", "same"], ["y"]),
    ]
    w = rng.standard_normal((4, 3), dtype=np.float32)
    net = load(model_of(nodes, [info("x", 2, 3)], [info("y", 2, 4)], {"w": w}))
    assert [name for name, _ in net.named_children()] == ["MatMul_0"]
    np.testing.assert_array_equal(net.MatMul_0.B.detach().numpy(), w.T)


def test_a_models_own_function_is_its_body():
    body = [
        helper.make_node("Mul", ["a", "a"], ["square"]),
        helper.make_node("LeakyRelu", ["square"], ["b"]),
    ]
    body[1].attribute.add(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT)
    function = helper.make_function(
        "own", "Bend", ["a"], ["b"], body, [helper.make_opsetid("", 17)], ["slope"]
    )
    node = helper.make_node("Bend", ["x"], ["y"], domain="own", slope=0.25)
    net = load(model_of([node], [info("x", 2)], [info("y", 2)], functions=[function]))
    assert net(convcore.tensor([-2.0, 3.0])).tolist() == [4.0, 9.0]
    assert net.get_submodule("Bend_0.body.LeakyRelu_0").negative_slope == 0.25


def test_branches_use_weights_from_outside():
    def branch(op):
        node = helper.make_node(op, ["x", "w"], ["r"])
        return helper.make_graph([node], op, [], [info("r", 2)])

    node = helper.make_node(
        "If", ["yes"], ["y"], then_branch=branch("Add"), else_branch=branch("Mul")
    )
    inputs = [info("yes", kind=TensorProto.BOOL), info("x", 2)]
    proto = model_of([node], inputs, [info("y", 2)], {"w": np.array([2, 3], np.float32)})
    net, x = load(proto), convcore.tensor([5.0, 5.0])
    assert net(convcore.tensor(True), x).tolist() == [7.0, 8.0]
    y = net(convcore.tensor(False), x)
    assert y.tolist() == [10.0, 15.0]
    y.sum().backward()
    assert next(net.parameters()).grad.tolist() == [5.0, 5.0]


def test_what_is_not_supported_is_named_at_once():
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("STFT", ["a", "step"], ["b"], "spectrum"),
        helper.make_node("Strange", ["b"], ["y"], domain="own"),
    ]
    inputs = [info("x", 1, 8, 1), info("step", kind=TensorProto.INT64)]
    text = "STFT of opset 17 in node 'spectrum'; own.Strange of opset 1 in node that computes 'y'"
    with pytest.raises(OnnxError, match=f"not supported: {text}"):
        load(model_of(nodes, inputs, [info("y", 1)]))


@pytest.mark.parametrize("data", [b"", b"no model", b"\x08\x07" * 50, bytes(range(256))])
def test_bytes_that_are_no_model_are_refused(data):
    with pytest.raises(OnnxError):
        load(data)


def test_a_cut_model_is_refused(proto):
    data = proto.SerializeToString()
    for end in range(10, len(data), 37):
        with pytest.raises(OnnxError):
            load(data[:end])(np.zeros((1, 3, 4, 4), np.float32))


def external(proto, location, **entries):
    """Have a model's first weight lie in another file."""
    tensor = proto.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=str(value))
    return proto


def test_external_data_is_read_from_the_models_folder(tmp_path, proto, weights, rng):
    (tmp_path / "data").mkdir()
    raw = weights["w1"].tobytes()
    (tmp_path / "data" / "w.bin").write_bytes(b"12345678" + raw)
    path = tmp_path / "net.onnx"
    path.write_bytes(external(proto, "data/w.bin", offset=8, length=len(raw)).SerializeToString())
    np.testing.assert_array_equal(load(path).first_conv.weight.detach().numpy(), weights["w1"])
    with pytest.raises(OnnxError, match="load the model by its path"):
        load(path.read_bytes())


@pytest.mark.parametrize(
    ("location", "entries", "text"),
    [
        ("../secret.bin", {}, "not below the model's folder"),
        ("/etc/passwd", {}, "not below the model's folder"),
        ("link.bin", {}, "not below the model's folder"),
        ("", {}, "not below the model's folder"),
        ("missing.bin", {}, "missing.bin"),
        ("w.bin", {"offset": -4}, "are not in"),
        ("w.bin", {"length": 10**9}, "are not in"),
        ("w.bin", {"offset": "x"}, "invalid literal"),
    ],
)
def test_external_data_elsewhere_is_refused(tmp_path, proto, location, entries, text):
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "secret.bin").write_bytes(bytes(432))
    (folder / "link.bin").symlink_to(tmp_path / "secret.bin")
    (folder / "w.bin").write_bytes(bytes(432))
    path = folder / "net.onnx"
    path.write_bytes(external(proto, location, **entries).SerializeToString())
    with pytest.raises(OnnxError, match=text):
        load(path)


def test_a_missing_file_and_another_type_are_named(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none.onnx")
    with pytest.raises(TypeError, match="must be a path, bytes or ModelProto, got int"):
        load(3)


def test_a_broken_graph_is_an_error_of_its_own():
    nodes = [helper.make_node("Relu", ["nowhere"], ["y"])]
    with pytest.raises(OnnxError, match="nowhere"):
        load(model_of(nodes, [info("x", 2)], [info("y", 2)]))
    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    with pytest.raises(OnnxError, match="'z'"):
        load(model_of(nodes, [info("x", 2)], [info("z", 2)]))


def test_only_the_last_layer_learns_when_asked(proto, rng):
    net = load(proto)
    for name, parameter in net.named_parameters():
        parameter.requires_grad_(name.startswith("Gemm_0"))
    optimizer = convcore.optim.SGD(net.Gemm_0.parameters(), lr=0.1)
    before = {name: value.clone() for name, value in net.state_dict().items()}
    x = convcore.tensor(rng.standard_normal((8, 3, 5, 5), dtype=np.float32))
    target = convcore.arange(8) % 5
    losses = []
    for _ in range(20):
        loss = nn.functional.cross_entropy(net(x), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    changed = {k for k, v in net.state_dict().items() if not v.equal(before[k])}
    assert changed == {"Gemm_0.weight", "Gemm_0.bias"}


def test_layers_that_take_one_weight_share_a_parameter(rng):
    w = rng.standard_normal((2, 2, 1, 1), dtype=np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"]),
        helper.make_node("Identity", ["w"], ["tied"]),
        helper.make_node("Conv", ["a", "tied"], ["y"]),
    ]
    net = load(model_of(nodes, [info("x", 1, 2, 3, 3)], [info("y", 1, 2, 3, 3)], {"w": w}))
    assert net.Conv_0.weight is net.Conv_1.weight


def test_a_named_node_keeps_its_name():
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("Relu", ["a"], ["y"], "Relu_0"),
    ]
    net = load(model_of(nodes, [info("x", 2)], [info("y", 2)]))
    assert [name for name, _ in net.named_children()] == ["Relu_0_1", "Relu_0"]
    assert net.get_submodule("Relu_0").onnx_name == "Relu_0"


def test_inputs_whose_identifiers_are_equal_get_endings():
    nodes = [helper.make_node("Sub", ["a:0", "a_0"], ["y"])]
    net = load(model_of(nodes, [info("a:0", 1), info("a_0", 1)], [info("y", 1)]))
    one, two = convcore.tensor([1.0]), convcore.tensor([2.0])
    assert net(a_0=two, a_0_1=one).tolist() == [1.0]


def test_nets_are_pickled_and_copied(proto, rng):
    nodes = [
        helper.make_node("Add", ["x", "w"], ["a"]),
        helper.make_node("ReduceMax", ["a"], ["y"], axes=[1]),
    ]
    net = load(model_of(nodes, [info("x", 2, 2)], [info("y", 2, 1)], {"w": np.eye(2, dtype="f4")}))
    x = convcore.tensor(rng.standard_normal((2, 2), dtype=np.float32))
    for other in (pickle.loads(pickle.dumps(net)), copy.deepcopy(net)):
        assert other(x).equal(net(x))
    assert pickle.loads(pickle.dumps(load(proto))) is not None


def test_weights_can_be_parametrized(rng):
    w = rng.standard_normal((3, 3), dtype=np.float32)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    net = load(model_of(nodes, [info("x", 1, 3)], [info("y", 1, 3)], {"w": w}))
    nn.utils.prune.l1_unstructured(net.MatMul_0, "B", 0.5)
    assert net(convcore.ones(1, 3)).shape == (1, 3)


def test_a_result_that_is_a_constant_is_a_copy():
    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    weights = {"c": np.zeros(2, np.float32)}
    net = load(model_of(nodes, [info("x", 2)], [info("y", 2), info("c", 2)], weights))
    net(convcore.ones(2))[1].add_(5)
    assert net(convcore.ones(2))[1].tolist() == [0.0, 0.0]


def test_outputs_left_out_at_the_end_are_none():
    names = ["scale", "shift", "mean", "var"]
    node = helper.make_node("BatchNormalization", ["x", *names], ["y", "", ""])
    weights = {name: np.ones(2, np.float32) for name in names}
    net = load(model_of([node], [info("x", 3, 2, 1)], [info("y", 3, 2, 1)], weights, opset=15))
    assert net(convcore.ones(3, 2, 1)).shape == (3, 2, 1)


@pytest.mark.parametrize(
    ("op", "inputs", "options"),
    [
        ("Pow", {"e": np.array(2, np.int64)}, {}),
        ("Mod", {"e": np.array(1.5, np.float32)}, {"fmod": 1}),
        ("ReduceSum", {}, {}),
    ],
)
def test_gradients_pass(op, inputs, options):
    node = helper.make_node(op, ["x", *inputs], ["y"], **options)
    net = load(model_of([node], [info("x")], [info("y")], inputs))
    x = convcore.tensor(3.0, requires_grad=True)
    net(x).backward()
    assert x.grad is not None


def test_the_maximum_of_a_region_is_of_its_own_pixels_alone():
    """Of pixels below zero too: those outside the samples weigh nothing, and are no zeros."""
    boxes = {"rois": np.array([[1, 1, 3, 3]], np.float32), "images": np.zeros(1, np.int64)}
    node = helper.make_node("RoiAlign", ["x", *boxes], ["y"], mode="max", sampling_ratio=1)
    net = load(model_of([node], [info("x")], [info("y")], boxes))
    x = convcore.full((1, 2, 5, 5), -1.0, requires_grad=True)
    found = net(x)  # one sample, amid four pixels
    assert found.tolist() == [[[[-0.25]], [[-0.25]]]]
    found.sum().backward()
    assert x.grad[:, :, 1:3, 1:3].sum() == x.grad.sum() == 0.5


def test_functions_pass_attributes_on_and_are_told_apart_by_overload():
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    inner = helper.make_node("LeakyRelu", ["a"], ["b"])
    inner.attribute.add(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT)
    outer = helper.make_node("Inner", ["a"], ["b"], domain="own")
    outer.attribute.add(name="slope", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT)
    functions = [
        helper.make_function("own", "Inner", ["a"], ["b"], [inner], opsets, ["slope"]),
        helper.make_function("own", "Outer", ["a"], ["b"], [outer], opsets, ["slope"]),
    ]
    node = helper.make_node("Outer", ["x"], ["y"], domain="own", slope=0.25)
    net = load(model_of([node], [info("x", 1)], [info("y", 1)], functions=functions))
    assert net(convcore.tensor([-4.0])).tolist() == [-1.0]


def test_a_function_may_not_name_other_files(tmp_path, monkeypatch):
    (tmp_path / "secret.bin").write_bytes(np.array([42, 43], np.float32).tobytes())
    monkeypatch.chdir(tmp_path)
    tensor = TensorProto(name="t", data_type=TensorProto.FLOAT, dims=[2])
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="secret.bin")
    body = [helper.make_node("Constant", [], ["b"], value=tensor)]
    function = helper.make_function("own", "F", ["a"], ["b"], body, [helper.make_opsetid("", 17)])
    node = helper.make_node("F", ["x"], ["y"], domain="own")
    proto = model_of([node], [info("x", 1)], [info("y", 2)], functions=[function])
    with pytest.raises(OnnxError, match="load the model by its path"):
        load(proto.SerializeToString())


def test_folding_and_functions_have_an_end():
    """Of a small file a large net cannot be made."""
    chain = [
        helper.make_node("Concat", [f"c{k}", f"c{k}"], [f"c{k + 1}"], axis=0) for k in range(30)
    ]
    last = helper.make_node("Add", ["x", "c30"], ["y"])
    weights = {"c0": np.zeros(1000, np.float32)}
    net = load(model_of([*chain, last], [info("x", 1)], [info("y", 1)], weights))
    assert sum(p.numel() for p in net.parameters()) < 100_000
    opsets = [helper.make_opsetid("own", 1)]

    def twice(k):
        return [
            helper.make_node(f"F{k}", ["a"], ["m"], domain="own"),
            helper.make_node(f"F{k}", ["m"], ["b"], domain="own"),
        ]

    functions = [
        helper.make_function("own", f"F{k}", ["a"], ["b"], twice(k + 1), opsets) for k in range(40)
    ]
    relu = helper.make_node("Relu", ["a"], ["b"])
    functions.append(
        helper.make_function("own", "F40", ["a"], ["b"], [relu], [helper.make_opsetid("", 17)])
    )
    node = helper.make_node("F0", ["x"], ["y"], domain="own")
    with pytest.raises(OnnxError, match="more than 100 nodes of each"):
        load(model_of([node], [info("x", 1)], [info("y", 1)], functions=functions))


@pytest.mark.parametrize("kind", [TensorProto.INT64, TensorProto.DOUBLE])
def test_a_loop_of_no_steps_puts_out_nothing_of_its_type(kind):
    infos = [info(name, kind=TensorProto.BOOL) for name in ("go", "on")]
    nodes = [helper.make_node("Identity", [a], [b]) for a, b in (("go", "on"), ("x", "row"))]
    body = helper.make_graph(
        nodes,
        "body",
        [info("i", kind=TensorProto.INT64), infos[0]],
        [infos[1], info("row", 3, kind=kind)],
    )
    node = helper.make_node("Loop", ["n", ""], ["y"], body=body)
    inputs = [info("n", kind=TensorProto.INT64), info("x", 3, kind=kind)]
    net = load(model_of([node], inputs, [info("y", "k", 3, kind=kind)]))
    x = np.array([1, 2, 3], helper.tensor_dtype_to_np_dtype(kind))
    for count in (0, 2):
        y = net(convcore.tensor(count), x).numpy()
        assert (y.dtype, y.shape) == (x.dtype, (count, 3))


@pytest.mark.parametrize(
    ("op", "options"),
    [
        ("Gather", {"axis": 2}),
        ("Gather", {"axis": -3}),
        ("ReduceMean", {"axes": [5]}),
        ("LayerNormalization", {"axis": 2}),
        ("Squeeze", {"axes": [-4]}),
        ("Unsqueeze", {"axes": [3]}),
        ("Slice", {"starts": [0], "ends": [1], "axes": [2]}),
    ],
)
def test_axes_that_are_not_there_are_refused(op, options, rng):
    weights = {"w": np.ones(3, np.float32)} if op.startswith("Layer") else {}
    if op == "Gather":
        weights = {"w": np.array([0])}
    opset = 17 if op.startswith("Layer") else 9
    node = helper.make_node(op, ["x", *weights], ["y"], **options)
    net = load(model_of([node], [info("x", 2, 3)], [info("y", "a", "b")], weights, opset))
    with pytest.raises(OnnxError, match=r"axis -?[0-9]+ of [0-9] axes: allowed are"):
        net(convcore.tensor(rng.random((2, 3), dtype=np.float32)))


def test_recurrent_activations_take_their_parameters_in_turn(rng):
    # Sigmoid has none: the alphas are those of LeakyRelu and Elu, in each direction.
    names, alphas = ["Sigmoid", "LeakyRelu", "Elu"] * 2, [0.3, 0.7, 0.2, 0.4]

    def net_of(per_activation):
        arrays = {"w": (2, 8, 3), "r": (2, 8, 2)}
        weights = {
            k: np.linspace(-1, 1, np.prod(s), dtype=np.float32).reshape(s)
            for k, s in arrays.items()
        }
        node = helper.make_node(
            "LSTM",
            ["x", "w", "r"],
            ["y"],
            hidden_size=2,
            direction="bidirectional",
            activations=names,
            activation_alpha=per_activation,
        )
        return model_of([node], [info("x", 4, 1, 3)], [info("y", 4, 2, 1, 2)], weights)

    proto, x = net_of(alphas), rng.standard_normal((4, 1, 3), dtype=np.float32)
    y = load(proto)(x).detach().numpy()
    assert not np.allclose(y, load(net_of([0.7, 0.3, 0.4, 0.2]))(x).detach().numpy())
    pytest.importorskip("onnxruntime")
    proto.ir_version = 8
    (expected,) = session_of(proto.SerializeToString()).run(None, {"x": x})
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)
