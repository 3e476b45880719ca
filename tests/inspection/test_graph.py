"""pictures.graph: the boxes and arrows of a net, as convcore and as Graphviz draw them."""

import itertools
import re
import shutil
import xml.etree.ElementTree as ElementTree

import pytest

import convcore
from convcore import models, nn
from convcore.inspection import pictures
from convcore.inspection.pictures import _graphviz
from convcore.inspection.reporting._boxes import boxes_of, edges_of
from convcore.inspection.reporting._calls import calls_of

TIMES, DOT, UNTIL = "\N{MULTIPLICATION SIGN}", "\N{MIDDLE DOT}", "\N{HORIZONTAL ELLIPSIS}"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def net():
    return models.resnet8()


def image():
    return convcore.rand(1, 3, 16, 16)


def names(graph):
    """Return the names in a graph's boxes, from the picture."""
    tree = ElementTree.fromstring(graph.svg)
    return [one.text for one in tree.iter(f"{SVG}tspan") if one.get("class") == "name"]


def svg_words(graph):
    """Return a picture's text with plain signs."""
    return graph.svg.replace(TIMES, "x").replace(DOT, ".").replace(UNTIL, "...")


def arrows(graph):
    return re.findall(r"^(\d+) -> (\d+)$", graph.source, re.MULTILINE)


def test_boxes_are_layers_and_blocks_with_their_costs(net):
    graph = pictures.graph(net, image())
    assert names(graph) == [
        *("conv1", "bn1", "relu", "layer1", "layer2", "layer3", "avgpool", "flatten", "fc")
    ]
    # 16 maps of 16 x 16 pixels, of 27 products each
    words = svg_words(graph)
    assert "1 x 16 x 16 x 16 . 16 KiB . 111 k MACs" in words
    assert "input 1 x 3 x 16 x 16" in words and "result 1 x 10" in words
    assert " ms" not in graph.svg
    assert repr(graph).startswith("<Graph of 9 boxes")


def test_functions_are_named_once_and_lines_take_no_more_room_than_they_need(net):
    inside = pictures.graph(net, image(), inside="layer1.0")
    assert 'label="add\\n' in inside.source and "add</tspan> <tspan></tspan>" in inside.svg
    widths = [
        int(ElementTree.fromstring(g.svg).get("width"))
        for g in (inside, pictures.graph(net, image()))
    ]
    assert widths == [380, 356]


def test_depth_opens_blocks_and_inside_draws_one(net):
    block = ["conv1", "bn1", "relu", "conv2", "bn2", "add", "relu:2"]
    opened = names(pictures.graph(net, image(), depth=3))
    assert [f"layer1.0.{name}" for name in block] == opened[3:10]
    inside = pictures.graph(net, image(), inside="layer1.0")
    assert names(inside) == block
    # The sum takes the block's input, past the convolutions.
    assert ("0", "6") in arrows(inside) and ("5", "6") in arrows(inside)


def test_shortcut_that_is_called_in_between_does_not_cut_the_chain(net):
    """ResNet's blocks call downsample between conv2 and bn2, which takes conv2's result."""
    inside = pictures.graph(net, image(), inside="layer2.0")
    block = ["conv1", "bn1", "relu", "conv2", "bn2", "downsample", "add", "relu:2"]
    assert names(inside) == block
    ends = [("input", "conv1"), *itertools.pairwise(block[:5]), ("input", "downsample")]
    ends += [("bn2", "add"), ("downsample", "add"), ("add", "relu:2"), ("relu:2", "result")]
    places = {name: str(place) for place, name in enumerate(["input", *block, "result"])}
    assert sorted(arrows(inside)) == sorted((places[a], places[b]) for a, b in ends)
    assert "input 1 x 16 x 16 x 16" in svg_words(inside)  # the block's own


def test_blocks_that_repeat_are_one_box():
    block = [nn.Sequential(nn.Conv2d(3, 3, 1), nn.ReLU()) for _ in range(4)]
    graph = pictures.graph(nn.Sequential(*block), image(), depth=2)
    assert names(graph) == [f"0 {UNTIL} 3"] and "4 x Sequential" in svg_words(graph)
    assert arrows(graph) == [("0", "1"), ("1", "2")]


def test_times_are_there_only_when_asked_for(net):
    assert re.search(r"MACs . [\d.]+ ms", svg_words(pictures.graph(net, image(), times=True)))


def test_same_net_and_input_make_the_same_graph_and_change_nothing(net):
    net.train()
    x = image().requires_grad_()
    first, second = pictures.graph(net, x), pictures.graph(net, x)
    assert (first.svg, first.source) == (second.svg, second.source)
    assert net.training and x.grad is None
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in net.modules())


def test_names_are_text_in_both_languages():
    net = nn.Sequential()
    net.add_module('a"b<c>\\n', nn.Sequential(nn.Conv2d(3, 2, 1)))
    graph = pictures.graph(net, image())
    assert names(graph) == ['a"b<c>\\n']
    assert 'label="a\\"b<c>\\\\n  Sequential\\n' in graph.source


def test_without_graphviz_svg_is_drawn_here_and_others_are_refused(net, tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    graph = pictures.graph(net, image())
    assert graph.save(tmp_path / "net.svg").read_text(encoding="utf-8") == graph.svg
    assert graph.save(tmp_path / "net.gv").read_text(encoding="utf-8") == graph.source
    with pytest.raises(ValueError, match="needs Graphviz"):
        graph.save(tmp_path / "net.png")
    with pytest.raises(ValueError, match="must end in"):
        graph.save(tmp_path / "net.jpg")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["net.gv", "net.svg"]


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not here")
def test_graphviz_draws_every_box_and_arrow(net, tmp_path):
    graph = pictures.graph(net, image(), depth=3)
    tree = ElementTree.parse(graph.save(tmp_path / "net.svg"))
    groups = [one.get("class") for one in tree.iter(f"{SVG}g")]
    assert groups.count("node") == len(names(graph)) + 2
    assert groups.count("edge") == len(arrows(graph))
    assert graph.save(tmp_path / "net.png").read_bytes().startswith(b"\x89PNG")
    assert graph.save(tmp_path / "net.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize(
    ("does", "says"),
    [("echo out of paper >&2\nexit 3", "out of paper"), ("exec sleep 30", "nothing in 0.1")],
)
def test_graphviz_that_fails_is_an_error(net, tmp_path, monkeypatch, does, says):
    program = tmp_path / "dot"
    program.write_text(f"#!/bin/sh\n{does}\n")
    program.chmod(0o755)
    monkeypatch.setattr(shutil, "which", lambda name: str(program))
    if "sleep" in does:
        monkeypatch.setattr(_graphviz, "_PATIENCE", 0.1)
    with pytest.raises(RuntimeError, match=says):
        pictures.graph(net, image()).save(tmp_path / "net.svg")
    assert not (tmp_path / "net.svg").exists()


def test_optimized_net_is_refused_whose_costs_are_not_known():
    fast = convcore.optimize_for_inference(models.resnet8())
    with pytest.raises(RuntimeError, match=r"graph cannot tell .*: give it the model that it was"):
        pictures.graph(fast, image())


@pytest.mark.parametrize(
    ("arguments", "options", "error", "words"),
    [
        ((3, 3), {}, TypeError, "model must be a Module, got int"),
        ((nn.ReLU(), 3), {}, TypeError, "input must be a Tensor"),
        ((nn.ReLU(), convcore.ones(1)), {"depth": 0}, ValueError, "depth must be"),
        ((models.lenet(), convcore.ones(1, 1, 28, 28)), {"inside": "convl"}, KeyError, "inside"),
        ((models.resnet8(), image()), {"inside": "layer1.1"}, KeyError, "is 'layer1.0' meant"),
    ],
)
def test_other_arguments_are_refused(arguments, options, error, words):
    with pytest.raises(error, match=words):
        pictures.graph(*arguments, **options)


def test_weights_come_from_nowhere():
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(1, 2, 3)
            self.weight = nn.Parameter(convcore.ones(2, 2, 1, 1))

        def forward(self, input):
            return nn.functional.conv2d(self.conv(input), self.weight)

    net, x = Own(), convcore.rand(1, 1, 5, 5)
    calls = calls_of(net, lambda: net(x))
    assert edges_of(calls, boxes_of(calls, 0)) == {(0, 1), (1, 2), (2, 3)}


def test_a_net_of_onnx_is_a_chain_of_its_layers():
    onnx = pytest.importorskip("onnx", reason="needs onnx: pip install 'convcore[onnx]'")
    assert onnx
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(18, 2))
    x = convcore.rand(1, 1, 5, 5)
    loaded = convcore.onnx.export(net, (x,)).model_proto
    loaded = convcore.onnx.load(loaded.SerializeToString())
    calls = calls_of(loaded, lambda: loaded(x))
    boxes = boxes_of(calls, 0)
    n = len(boxes)
    assert edges_of(calls, boxes) == {(k, k + 1) for k in range(n + 1)}
    assert {box.kind(calls) for box in boxes} == {"costly", "plain"}
