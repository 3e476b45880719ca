"""Random ONNX models of nested graphs and functions, beside ONNX Runtime and the reference.

    python tests/fuzz/onnx_graphs.py --count 20000 --seed 1
    python tests/fuzz/onnx_graphs.py --show 17          the text of one model

If, Loop, Scan and local functions lie in one another; the names of values, nodes and functions come
from a small set, so that they are shared, shadowed and repeated.  In strict models only inputs of
graphs inside nodes shadow outer names, as ONNX Runtime demands; in free models, which only the
reference runs, results of nodes and initializers do too.  Then the weights of each net are changed,
and it is written back: the new model is compared in the same way.  Exit code 1 if a result differs.
"""

from __future__ import annotations

import argparse
import io
import random
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import convcore
from convcore.onnx import OnnxError, load, save

try:
    import onnxruntime
except ImportError:
    onnxruntime = None

NAMES = ("a", "b", "c", "k", "x", "y", "out")
OWN = "own"
OPSETS = [helper.make_opsetid("", 17), helper.make_opsetid(OWN, 1)]
# Kinds of values: vectors of 2, matrices of 3 of them, truth values, counts.
KINDS = {
    "vector": (TensorProto.FLOAT, [2]),
    "matrix": (TensorProto.FLOAT, [3, 2]),
    "truth": (TensorProto.BOOL, []),
    "count": (TensorProto.INT64, []),
}
MAX_DEPTH = 3


def info(name: str, kind: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, *KINDS[kind])


class Function:
    """A function of the model: its name, and how many vectors it takes and returns."""

    def __init__(self, name: str, n_inputs: int, n_outputs: int) -> None:
        self.name, self.n_inputs, self.n_outputs = name, n_inputs, n_outputs


class Block:
    """Nodes that are drawn one after the other, with the names that they see."""

    def __init__(self, model: Model, outer: dict[str, str], depth: int, in_function: bool) -> None:
        self.model, self.draw, self.depth = model, model.draw, depth
        self.in_function = in_function
        self.seen = dict(outer)  # kinds of all visible values, by name
        self.nodes: list[onnx.NodeProto] = []
        self.stored: list[onnx.TensorProto] = []
        self.node_names: set[str] = set()
        # Results here, and in graphs inside nodes: ONNX Runtime wants them to be different.
        self.own_names: set[str] = set()
        self.nested_names: set[str] = set()

    def initializers(self) -> None:
        """Draw constants that are there before all nodes."""
        for _ in range(self.draw.randint(0, 2)):
            kind, sizes = self.draw.choice((("vector", (2,)), ("square", (2, 2))))
            name = self.new_name()
            while name in self.seen:
                name += "1"
            self.stored.append(numpy_helper.from_array(self.numbers(*sizes), name))
            self.seen[name] = kind

    def new_name(self) -> str:
        """Return a name for a new value: in strict models one that is not seen here."""
        name = self.draw.choice(NAMES)
        if self.model.is_strict:
            while name in self.seen or name in self.nested_names:
                name += self.draw.choice("123")
            self.own_names.add(name)
        return name

    def input(self, kind: str, others: list[str]) -> str:
        """Return the name of a new input, which may hide one outside in strict models."""
        name = self.draw.choice(NAMES)
        while name in others or (not self.model.is_strict and name in self.seen):
            name += self.draw.choice("123")
        self.model.hides |= name in self.seen
        self.seen[name] = kind
        return name

    def add(self, op: str, inputs: list[str], kind: str, **options: Any) -> str:
        """Add a node of one output; return its name."""
        return self.add_many(op, inputs, [kind], **options)[0]

    def add_many(self, op: str, inputs: list[str], kinds: list[str], **options: Any) -> list[str]:
        names: list[str] = []
        for _ in kinds:
            name = self.new_name()
            while name in names:
                name = self.new_name() + self.draw.choice("123")
            names.append(name)
            if self.model.is_strict:
                self.seen[name] = "used"
        self.nodes.append(helper.make_node(op, inputs, names, self.node_name(), **options))
        self.seen.update(zip(names, kinds, strict=True))
        return names

    def node_name(self) -> str:
        """Return a name of a node, often none; in strict models no other node of the graph's."""
        name = self.draw.choice(("", "", *NAMES))
        if self.model.is_strict and (self.in_function or name in self.node_names):
            return ""
        self.node_names.add(name)
        return name

    def constant(self, array: Any, kind: str) -> str:
        """Return the name of a constant, which in free models hides nothing."""
        value = numpy_helper.from_array(np.asarray(array))
        if self.model.is_strict:
            return self.add("Constant", [], kind, value=value)
        name = self.unique_name()
        self.nodes.append(helper.make_node("Constant", [], [name], value=value))
        self.seen[name] = kind
        return name

    def unique_name(self) -> str:
        self.model.n_names += 1
        return f"v{self.model.n_names}"

    def held(self, name: str) -> str:
        """Return another name of a value, which is given to no other."""
        result = self.unique_name()
        self.nodes.append(helper.make_node("Identity", [name], [result]))
        self.seen[result] = self.seen[name]
        return result

    def vector(self) -> str:
        """Return the name of a vector that is visible, or of a new constant."""
        return self.visible("vector") or self.constant(self.numbers(2), "vector")

    def visible(self, kind: str) -> str:
        known = [name for name, each in self.seen.items() if each == kind]
        return self.draw.choice(known) if known else ""

    def numbers(self, *sizes: int) -> np.ndarray:
        return np.array(
            [self.draw.randint(-3, 3) for _ in range(int(np.prod(sizes)))], np.float32
        ).reshape(sizes)

    def truth(self) -> str:
        if self.draw.random() < 0.5 and (name := self.visible("truth")):
            return name
        if self.draw.random() < 0.3:
            return self.constant(np.array(self.draw.random() < 0.5), "truth")
        total = self.add("ReduceSum", [self.vector()], "number", keepdims=0)
        bound = self.constant(np.float32(self.draw.randint(-2, 2)), "number")
        return self.add("Less", [total, bound], "truth")

    def clipped(self, name: str) -> str:
        low = self.constant(np.float32(-50), "number")
        high = self.constant(np.float32(60), "number")
        return self.add("Clip", [name, low, high], "vector")

    def statement(self) -> None:
        """Add a few nodes that compute one new vector, or a few."""
        simple = [self.unary, self.unary, self.binary, self.binary, self.product, self.new_constant]
        nested = [self.branch, self.loop, self.scan]
        if self.model.functions:
            nested += [self.call, self.call]
        self.draw.choice(simple if self.depth >= MAX_DEPTH else simple + nested)()

    def unary(self) -> None:
        op = self.draw.choice(("Neg", "Abs", "Relu", "Identity", "LeakyRelu"))
        options = {"alpha": 0.5} if op == "LeakyRelu" else {}
        self.add(op, [self.vector()], "vector", **options)
        if op == "LeakyRelu" and self.in_function and self.draw.random() < 0.7:
            attribute = self.nodes[-1].attribute[0]
            attribute.ClearField("f")
            attribute.ref_attr_name = "slope"

    def binary(self) -> None:
        op = self.draw.choice(("Add", "Sub", "Max", "Min"))
        self.add(op, [self.vector(), self.vector()], "vector")

    def product(self) -> None:
        weight = self.constant(self.numbers(2, 2), "square")
        known = [name for name, kind in self.seen.items() if kind == "square"]
        weight = self.draw.choice(known) if known else weight
        self.clipped(self.add("MatMul", [self.vector(), weight], "vector"))

    def new_constant(self) -> None:
        value = numpy_helper.from_array(self.numbers(2))
        self.add("Constant", [], "vector", value=value)

    def inside(self, n_statements: int, n_outputs: int) -> tuple[list[str], Block]:
        """Return a block of a graph in this one, and the names of vectors computed in it."""
        block = Block(self.model, self.seen, self.depth + 1, self.in_function)
        block.initializers()
        return block.finish(n_statements, n_outputs), block

    def finish(self, n_statements: int, n_outputs: int) -> list[str]:
        for _ in range(n_statements):
            self.statement()
        return [self.held(self.clipped(self.vector())) for _ in range(n_outputs)]

    def graph(
        self,
        around: Block | None,
        inputs: list[onnx.ValueInfoProto],
        outputs: list[tuple[str, str]],
    ) -> onnx.GraphProto:
        """Return the graph of these nodes, which lies in a node of another block."""
        outputs = self.last(outputs)
        if around is not None:
            around.nested_names |= self.own_names | self.nested_names
        return helper.make_graph(
            self.nodes,
            self.draw.choice(NAMES),
            inputs,
            [info(*each) for each in outputs],
            self.stored,
        )

    def last(self, outputs: list[tuple[str, str]]) -> list[tuple[str, str]]:
        """Have nodes of their own compute the outputs, under different names, at the end."""
        names = self.add_outputs([name for name, _ in outputs], [kind for _, kind in outputs])
        return list(zip(names, (kind for _, kind in outputs), strict=True))

    def add_outputs(self, sources: list[str], kinds: list[str]) -> list[str]:
        # Under new names first: in free models a result may hide what another output still needs.
        fresh = [self.held(source) for source in sources]
        names: list[str] = []
        for source, kind in zip(fresh, kinds, strict=True):
            name = self.new_name()
            while name in names:
                name += "1"
            names.append(name)
            self.nodes.append(helper.make_node("Identity", [source], [name]))
            self.seen[name] = kind
        return names

    def branch(self) -> None:
        n_outputs = self.draw.randint(1, 2)
        condition = self.truth()
        graphs = {}
        for key in ("then_branch", "else_branch"):
            names, block = self.inside(self.draw.randint(0, 3), n_outputs)
            graphs[key] = block.graph(self, [], [(name, "vector") for name in names])
        self.add_many("If", [condition], ["vector"] * n_outputs, **graphs)

    def loop(self) -> None:
        n_states, n_scans = self.draw.randint(1, 2), self.draw.randint(0, 1)
        limit = self.constant(np.array(self.draw.randint(0, 3)), "count")
        condition = self.truth() if self.draw.random() < 0.6 else ""
        self.model.has_endless_loop |= not condition
        states = [self.vector() for _ in range(n_states)]
        block = Block(self.model, self.seen, self.depth + 1, self.in_function)
        kinds = ["count", "truth", *["vector"] * n_states]
        inputs: list[str] = []
        for kind in kinds:
            inputs.append(block.input(kind, inputs))
        block.initializers()
        names = block.finish(self.draw.randint(0, 3), n_states + n_scans)
        goes_on = block.truth()
        outputs = [(goes_on, "truth"), *((name, "vector") for name in names)]
        body = block.graph(self, [info(*each) for each in zip(inputs, kinds, strict=True)], outputs)
        kinds = ["vector"] * n_states + ["rows"] * n_scans
        results = self.add_many("Loop", [limit, condition, *states], kinds, body=body)
        for rows in results[n_states:]:
            axes = self.constant(np.array([0]), "axes")
            if self.seen[rows] == "rows":
                total = self.add("ReduceSum", [rows, axes], "vector", keepdims=0)
                self.clipped(total)

    def scan(self) -> None:
        matrix = self.visible("matrix") or self.constant(self.numbers(3, 2), "matrix")
        state = self.vector()
        block = Block(self.model, self.seen, self.depth + 1, self.in_function)
        inputs: list[str] = []
        for kind in ("vector", "vector"):
            inputs.append(block.input(kind, inputs))
        names = block.finish(self.draw.randint(0, 3), 2)
        body = block.graph(
            self, [info(name, "vector") for name in inputs], [(name, "vector") for name in names]
        )
        options = {}
        if self.draw.random() < 0.5:
            options["scan_input_directions"] = [self.draw.randint(0, 1)]
            options["scan_output_directions"] = [self.draw.randint(0, 1)]
        self.add_many(
            "Scan", [state, matrix], ["vector", "matrix"], body=body, num_scan_inputs=1, **options
        )

    def call(self) -> None:
        function = self.draw.choice(self.model.functions)
        inputs = [self.vector() for _ in range(function.n_inputs)]
        options = {"slope": self.draw.choice((0.25, 2.0))} if self.draw.random() < 0.5 else {}
        kinds = ["vector"] * function.n_outputs
        self.add_many(function.name, inputs, kinds, domain=OWN, **options)


class Model:
    """A model and its inputs, drawn from a seed.

    Attributes
    ----------
    is_strict : bool
        Whether ONNX Runtime takes it.
    hides : bool
        Whether an input of a graph inside a node has the name of a value outside.
    has_endless_loop : bool
        Whether a Loop has no condition, which ends it at once in the reference.
    """

    def __init__(self, seed: int) -> None:
        self.seed, self.draw = seed, random.Random(seed)
        self.is_strict, self.n_names = self.draw.random() < 0.7, 0
        self.hides = self.has_endless_loop = False
        self.functions: list[Function] = []
        functions = [self._function(k) for k in range(self.draw.randint(0, 2))]
        block = Block(self, {}, 0, False)
        self.inputs: dict[str, np.ndarray] = {}
        infos = []
        for _ in range(self.draw.randint(1, 2)):
            name = block.input("vector", list(block.seen))
            infos.append(info(name, "vector"))
            self.inputs[name] = block.numbers(2)
        for _ in range(self.draw.randint(0, 2)):
            name = block.new_name()
            while name in block.seen:
                name += "1"
            block.seen[name] = "vector"
            block.stored.append(numpy_helper.from_array(block.numbers(2), name))
            if self.draw.random() < 0.5:
                infos.append(info(name, "vector"))
                if self.draw.random() < 0.5:
                    self.inputs[name] = block.numbers(2)
        self.hides = False  # of graphs inside nodes alone
        names = block.finish(self.draw.randint(1, 5), self.draw.randint(1, 3))
        graph = block.graph(None, infos, [(name, "vector") for name in names])
        self.proto = helper.make_model(
            graph, opset_imports=OPSETS, functions=functions, ir_version=9
        )

    def _function(self, number: int) -> onnx.FunctionProto:
        name = ("Relu", "F")[number]
        n_inputs, n_outputs = self.draw.randint(0, 2), self.draw.randint(1, 2)
        block = Block(self, {}, 1, True)
        inputs: list[str] = []
        for _ in range(n_inputs):
            inputs.append(block.input("vector", inputs))
        results = block.finish(self.draw.randint(0, 3), n_outputs)
        outputs = block.last([(each, "vector") for each in results])
        slope = helper.make_attribute("slope", 0.5)
        self.functions.append(Function(name, n_inputs, n_outputs))
        return helper.make_function(
            OWN,
            name,
            inputs,
            [each for each, _ in outputs],
            block.nodes,
            OPSETS,
            attribute_protos=[slope],
        )


class Renaming:
    """Gives each value of a model a name of its own: the same model, without shared names."""

    def __init__(self, proto: onnx.ModelProto) -> None:
        self.n_names = 0
        self.proto = onnx.ModelProto()
        self.proto.CopyFrom(proto)
        graph = self.proto.graph
        # The caller gives inputs by name.
        self._graph(graph, {each.name: each.name for each in graph.input})
        for function in self.proto.functions:
            names = {name: self._new() for name in function.input}
            function.input[:] = names.values()
            self._nodes(function.node, names)
            function.output[:] = [names[name] for name in function.output]

    def _new(self) -> str:
        self.n_names += 1
        return f"value_{self.n_names}"

    def _graph(self, graph: onnx.GraphProto, names: dict[str, str]) -> None:
        own = {each.name for each in graph.input}
        for each in graph.initializer:
            if each.name not in own:
                names[each.name] = self._new()
            each.name = names[each.name]
        self._nodes(graph.node, names)
        for each in graph.output:
            each.name = names[each.name]

    def _nodes(self, nodes: Any, names: dict[str, str]) -> None:
        for node in nodes:
            node.name = ""
            node.input[:] = [name and names[name] for name in node.input]
            for attribute in node.attribute:
                if attribute.type == onnx.AttributeProto.GRAPH:
                    inside = dict(names)
                    for each in attribute.g.input:
                        inside[each.name] = self._new()
                        each.name = inside[each.name]
                    self._graph(attribute.g, inside)
            for name in node.output:
                names[name] = self._new()
            node.output[:] = [names[name] for name in node.output]


def by_reference(proto: onnx.ModelProto, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    return ReferenceEvaluator(proto).run(None, inputs)


def by_runtime(proto: onnx.ModelProto, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    # Its optimizations crash on some of these models.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), options, ["CPUExecutionProvider"]
    )
    return session.run(None, inputs)


def by_convcore(model: Model) -> list[np.ndarray]:
    """Return the results, which another load does not change: of every fourth model."""
    results = []
    for given in (model.proto, model.proto.SerializeToString())[: 1 + (model.seed % 4 == 0)]:
        results.append(results_of(load(given), model))
    assert str(results[0]) == str(results[-1]), "a second load differs"
    return results[0]


def results_of(net: Any, model: Model) -> list[np.ndarray]:
    found = net(**{name: convcore.from_numpy(array) for name, array in model.inputs.items()})
    return [each.detach().numpy() for each in (found if isinstance(found, tuple) else (found,))]


def tuned(model: Model) -> list[np.ndarray] | None:
    """Return the results of a net with other weights, and give the model those; None if refused."""
    net, file, draw = load(model.proto), io.BytesIO(), random.Random(model.seed)
    with convcore.no_grad():
        for parameter in net.parameters():
            parameter.copy_(
                convcore.tensor([draw.randint(-3, 3) for _ in parameter.reshape(-1)]).reshape(
                    parameter.shape
                )
            )
    before = model.proto.SerializeToString(deterministic=True)
    try:
        save(net, file)
    except OnnxError as error:
        assert "cannot hold" in str(error), error
        return None
    assert model.proto.SerializeToString(deterministic=True) == before, "save() changes the model"
    model.proto = onnx.ModelProto.FromString(file.getvalue())
    return results_of(net, model)


def others(model: Model) -> Iterator[tuple[str, Callable[..., Any], onnx.ModelProto]]:
    """Yield the other implementations, each with a model of the same meaning that it can run."""
    renamed = Renaming(model.proto).proto
    if onnxruntime is not None:
        if model.is_strict:
            yield "ONNX Runtime", by_runtime, model.proto
        if not model.is_strict or model.hides:
            yield "ONNX Runtime, renamed", by_runtime, renamed
    # In the reference, an input of a graph inside a node does not hide a name outside.
    if not model.has_endless_loop:
        yield "the reference, renamed", by_reference, renamed


def fault(seed: int, compared: Counter[str]) -> str | None:
    """Return how the results of a model differ from those of the others."""
    model = Model(seed)
    try:
        own = by_convcore(model)
    except Exception as error:
        return f"convcore: {type(error).__name__}: {error}"
    if text := difference(own, model, compared):
        return text
    try:
        new = tuned(model)
        if new is None:
            compared["not written back"] += 1
            return None
        if str(by_convcore(model)) != str(new):
            return "written back, the net differs"
    except Exception as error:
        return f"written back: {type(error).__name__}: {error}"
    compared["written back"] += 1
    text = difference(new, model, compared)
    return text and f"written back: {text}"


def difference(own: list[np.ndarray], model: Model, compared: Counter[str]) -> str | None:
    """Return how results differ from those of the others for the same model."""
    for name, run, proto in others(model):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                results = run(proto, model.inputs)
        except Exception as error:
            # ONNX Runtime's check of types confuses a hidden name's type with the other's.
            if run is by_runtime and not re.search("InferenceError|Type Error", str(error)):
                return f"{name}: {type(error).__name__}: {error}"
            compared[f"refused by {name}"] += 1  # a Scan backwards, rows of no steps
            continue
        compared[name] += 1
        for k, (a, b) in enumerate(zip(own, results, strict=True)):
            if a.shape != b.shape or not np.array_equal(a, b):
                return f"output {k} is {a.tolist()}, by {name} {b.tolist()}"
    return None


def run(count: int, seed: int) -> tuple[dict[int, str], Counter[str]]:
    """Return the faults by seed, and how many models were compared with each implementation."""
    compared: Counter[str] = Counter()
    faults: dict[int, str] = {}
    for each in range(seed * 10_000_000, seed * 10_000_000 + count):
        if text := fault(each, compared):
            faults[each] = text
            print(f"{each}: {' '.join(text.split())[:300]}", flush=True)
    return faults, compared


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, help="a model's seed, as printed for a fault")
    arguments = parser.parse_args()
    if arguments.show is not None:
        model = Model(arguments.show)
        print(onnx.printer.to_text(model.proto), model.inputs, fault(arguments.show, Counter()))
        return 0
    faults, compared = run(arguments.count, arguments.seed)
    with_others = ", ".join(f"{name} {times}" for name, times in sorted(compared.items()))
    print(f"{arguments.count} models ({with_others}): {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
