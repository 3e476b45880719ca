"""Names of graphs inside nodes and of functions; defaults of inputs; limits of a net's size."""

import copy
import pickle
import sys

import numpy as np
import pytest

import convcore

onnx = pytest.importorskip("onnx", reason="needs onnx: pip install 'convcore[onnx]'")

from onnx import TensorProto, helper, numpy_helper, parser  # noqa: E402

from convcore.onnx import Backend, OnnxError, load  # noqa: E402

HEAD = '<ir_version: 8, opset_import: ["" : 17, "own" : 1]>'


def net_of(text):
    return load(parser.parse_model(f"{HEAD} {text}"))


def ones(*sizes):
    return convcore.ones(*sizes)


BRANCHES = """g (bool c, float[1, 2] x) => (float[1, 2] y) {
    y = If (c) <
        then_branch = one () => (float[1, 2] r) {
            k = Constant <value = float[2, 2] {2, 0, 0, 2}> () r = MatMul (x, k) },
        else_branch = other () => (float[1, 2] r) {
            k = Constant <value = float[2, 2] {3, 0, 0, 3}> () r = MatMul (x, k) }> }"""
# Each with the result for x = (1, 1).
SHADOWED = {
    "a result in a branch": (
        "k = Constant <value = float[2] {5, 5}> () c = Constant <value = bool {1}> () "
        "y = If (c) <then_branch = a () => (float[2] r) { k = Neg (x) r = Add (k, k) }, "
        "else_branch = b () => (float[2] r) { r = Add (x, k) }>",
        -2,
    ),
    "a result after the outer value was used": (
        "k = Constant <value = float[2] {5, 5}> () c = Constant <value = bool {1}> () "
        "y = If (c) <then_branch = a () => (float[2] r) { s = Add (x, k) k = Neg (x) "
        "r = Add (s, k) }, else_branch = b () => (float[2] r) { r = Add (x, k) }>",
        5,
    ),
    "a constant after the outer value was used": (
        "k = Neg (x) c = Constant <value = bool {1}> () "
        "y = If (c) <then_branch = a () => (float[2] r) { s = Add (x, k) "
        "k = Constant <value = float[2] {7, 7}> () r = Add (s, k) }, "
        "else_branch = b () => (float[2] r) { r = Add (x, k) }>",
        7,
    ),
    "an initializer of a branch": (
        "k = Neg (x) c = Constant <value = bool {1}> () "
        "y = If (c) <then_branch = a () => (float[2] r) <float[2] k = {7, 7}> { r = Add (x, k) }, "
        "else_branch = b () => (float[2] r) { r = Add (x, k) }>",
        8,
    ),
    "the outer value after the branch": (
        "k = Neg (x) c = Constant <value = bool {1}> () "
        "z = If (c) <then_branch = a () => (float[2] r) { k = Exp (k) r = Sub (k, k) }, "
        "else_branch = b () => (float[2] r) { r = Add (x, k) }> y = Add (z, k)",
        -1,
    ),
    "an input of a Loop's body, a constant outside": (
        "n = Constant <value = int64 {3}> () k = Constant <value = float[2] {5, 5}> () "
        "y = Loop (n, , x) <body = b (int64 i, bool c, float[2] k) => (bool d, float[2] r) "
        "{ d = Identity (c) r = Add (k, k) }>",
        8,
    ),
    "an input of a Loop's body, computed outside": (
        "n = Constant <value = int64 {3}> () k = Neg (x) "
        "y = Loop (n, , x) <body = b (int64 i, bool c, float[2] k) => (bool d, float[2] r) "
        "{ d = Identity (c) r = Add (k, k) }>",
        8,
    ),
    "an input of a Loop's body with an initializer": (
        "n = Constant <value = int64 {3}> () "
        "y = Loop (n, , x) <body = b (int64 i, bool c, float[2] k) => (bool d, float[2] r) "
        "<float[2] k = {9, 9}> { d = Identity (c) r = Add (k, k) }>",
        8,
    ),
    "an input of a Scan's body": (
        "k = Constant <value = float[2] {5, 5}> () m = Constant <value = float[2, 2] {1, 1, 2, 2}>"
        "() y, z = Scan <num_scan_inputs = 1, body = b (float[2] k, float[2] x) => "
        "(float[2] r, float[2] s) { r = Add (k, x) s = Identity (k) }> (k, m)",
        8,
    ),
    "a name given twice": ("k = Neg (x) k = Add (k, k) y = Add (k, x)", -1),
    "a constant given twice": (
        "k = Constant <value = float[2] {5, 5}> () a = Add (x, k) "
        "k = Constant <value = float[2] {7, 7}> () y = Add (a, k)",
        13,
    ),
    "an input given again": ("x = Neg (x) y = Add (x, x)", -2),
    "a name that an ending makes": ("x_1 = Add (x, x) x = Neg (x) y = Add (x, x_1)", 1),
}


def test_branches_have_constants_of_their_own():
    for _ in range(20):
        net = net_of(BRANCHES)
        assert net(convcore.tensor(True), ones(1, 2)).tolist() == [[2, 2]]
        assert net(convcore.tensor(False), ones(1, 2)).tolist() == [[3, 3]]
        assert len(list(net.parameters())) == 2


@pytest.mark.parametrize("case", SHADOWED)
def test_a_name_stands_for_the_value_last_given_to_it(case):
    nodes, expected = SHADOWED[case]
    assert net_of(f"g (float[2] x) => (float[2] y) {{ {nodes} }}")(ones(2)).tolist() == [
        expected,
        expected,
    ]


def test_calls_of_a_function_do_not_share_names():
    net = net_of("""g (float[2] x) => (float[2] y) { k = Neg (x) a = own.F (x) y = own.F (a) }
        <domain: "own", opset_import: ["" : 17]> F (x) => (y) {
            k = Constant <value = float[2] {3, 3}> () y = Mul (x, k) }""")
    assert net(ones(2)).tolist() == [9, 9]


def test_a_function_does_not_see_names_of_its_caller():
    with pytest.raises(OnnxError, match=r"in node that computes 'y': it takes 'k'"):
        net_of("""g (float[2] x) => (float[2] y) { k = Neg (x) y = own.F (x) }
            <domain: "own", opset_import: ["" : 17]> F (x) => (y) { y = Mul (x, k) }""")


DEFAULT = "g (float[1, 2] x, float[2, 2] w) => (float[1, 2] y) <float[2, 2] w = {2, 0, 0, 2}>"
# What is computed from the weight w.
OF_A_DEFAULT = {
    "a parameter": "y = MatMul (x, w)",
    "a layer": "y = Gemm <transB = 1> (x, w)",
    "a folded constant": "t = Transpose (w) u = Identity (t) y = MatMul (x, u)",
    "a constant that is no weight": "m = ReduceMax (w) y = Mul (x, m)",
    "a branch": "c = Constant <value = bool {1}> () y = If (c) <then_branch = a () => "
    "(float[1, 2] r) { r = MatMul (x, w) }, else_branch = b () => (float[1, 2] r) "
    "{ r = Neg (x) }>",
    "a function": "y = own.F (x, w)",
}
FUNCTION = '<domain: "own", opset_import: ["" : 17]> F (a, b) => (c) { c = MatMul (a, b) }'


@pytest.mark.parametrize("case", OF_A_DEFAULT)
def test_an_initializer_that_is_an_input_can_be_replaced(case):
    model = parser.parse_model(f"{HEAD} {DEFAULT} {{ {OF_A_DEFAULT[case]} }} {FUNCTION}")
    net = load(model)
    other = convcore.tensor([[5.0, 0.0], [0.0, 5.0]])
    for _ in range(2):
        assert net(ones(1, 2)).tolist() == [[2, 2]]
        assert net(ones(1, 2), other).tolist() == [[5, 5]]
        assert net(ones(1, 2), w=other.numpy()).tolist() == [[5, 5]]
        assert net(ones(1, 2), None).tolist() == [[2, 2]]
    assert Backend.prepare(model).run([np.ones((1, 2), np.float32), other.numpy()])[0][0, 0] == 5
    for copied in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert copied(ones(1, 2), other).tolist() == [[5, 5]]
    assert (net.input_names, net.optional_names) == (("x",), ("w",))
    with pytest.raises(TypeError, match="'v' is unknown"):
        net(ones(1, 2), v=other)


def test_a_batch_norms_statistics_can_be_replaced():
    net = net_of("""g (float[1, 1, 2] x, float[1] mean) => (float[1, 1, 2] y)
        <float[1] one = {1}, float[1] mean = {0}>
        { y = BatchNormalization <epsilon = 0.0> (x, one, one, mean, one) }""")
    assert net(ones(1, 1, 2)).tolist() == [[[2, 2]]]
    assert net(ones(1, 1, 2), convcore.tensor([1.0])).tolist() == [[[1, 1]]]


def test_a_gradient_reaches_what_replaces_a_default():
    net, other = net_of(f"{DEFAULT} {{ y = MatMul (x, w) }}"), convcore.zeros(2, 2)
    net(ones(1, 2), other.requires_grad_()).sum().backward()
    assert other.grad.tolist() == [[1, 1], [1, 1]]
    assert all(p.grad is None for p in net.parameters())


def test_old_models_list_their_constants_among_the_inputs():
    text = f"{HEAD.replace('8', '3')} {DEFAULT} {{ y = MatMul (x, w) }}"
    net = load(parser.parse_model(text))
    assert net.optional_names == ()
    with pytest.raises(TypeError, match="takes the 1 inputs"):
        net(ones(1, 2), ones(2, 2))


def test_an_optimized_net_takes_defaults_or_refuses(rng):
    net = net_of("""g (float[1, 2, 4, 4] x, float[2, 2, 1, 1] w) => (float[1, 2, 4, 4] y)
        <float[2, 2, 1, 1] w = {2, 0, 0, 2}> { y = Conv (x, w) }""")
    x, other = ones(1, 2, 4, 4), convcore.zeros(2, 2, 1, 1)
    fast = convcore.optimize_for_inference(net, x)
    for _ in range(3):
        assert fast(x).tolist() == net(x).tolist()
        try:
            assert fast(x, other).tolist() == net(x, other).tolist()
        except OnnxError as error:
            assert "'Conv_0': an optimized net has its weight built in" in str(error)


def chain(n):
    """Return a model of functions, each of which calls the next one."""

    def function(k):
        op, domain = (f"F{k + 1}", "own") if k + 1 < n else ("Relu", "")
        node = helper.make_node(op, ["a"], ["b"], domain=domain)
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
        return helper.make_function("own", f"F{k}", ["a"], ["b"], [node], opsets)

    value = [helper.make_tensor_value_info(name, 1, [2]) for name in "xy"]
    graph = helper.make_graph(
        [helper.make_node("F0", ["x"], ["y"], domain="own")], "g", *zip(value)
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    return helper.make_model(graph, opset_imports=opsets, functions=map(function, range(n)))


def test_functions_that_lie_deep_run_or_are_refused():
    assert load(chain(60))(ones(2)).tolist() == [1, 1]
    for n in (100, 300, 3000):
        with pytest.raises(OnnxError, match="lie more than 64 deep"):
            load(chain(n))


def test_a_callers_own_recursion_is_not_the_models():
    net = load(chain(60))

    def deep(k):
        return net(ones(2)) if k == 0 else deep(k - 1)

    with pytest.raises(RecursionError):
        deep(sys.getrecursionlimit() - 300)
    assert net(ones(2)).tolist() == [1, 1]


def test_constants_of_functions_called_again_are_limited():
    """A small file that is a large net: 900 calls of a function with 40 kB."""
    value = numpy_helper.from_array(np.ones(10_000, np.float32))
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]

    def times(n, op, domain="own"):
        return [helper.make_node(op, ["a"], [f"r{k}"], domain=domain) for k in range(n)]

    constant = helper.make_node("Constant", [], ["k"], value=value)
    total = helper.make_node("Add", ["a", "k"], ["b"])
    functions = [
        helper.make_function("own", "F", ["a"], ["b"], [constant, total], opsets),
        helper.make_function("own", "G", ["a"], ["r29"], times(30, "F"), opsets),
    ]
    graph = helper.make_graph(
        times(30, "G"),
        "g",
        [helper.make_tensor_value_info("a", TensorProto.FLOAT, [1])],
        [helper.make_tensor_value_info("r29", TensorProto.FLOAT, [10_000])],
    )
    model = helper.make_model(graph, opset_imports=opsets, functions=functions)
    with pytest.raises(OnnxError, match="constants have more than 16 times the file's size"):
        load(model)
