"""What an export returns: to be saved, and called as the net is."""

import io

import numpy as np
import pytest
from onnx_nets import runtime_results

import convcore
from convcore import nn

onnx = pytest.importorskip("onnx", reason="needs onnx: pip install 'convcore[onnx]'")

from convcore.onnx import export, load  # noqa: E402


@pytest.fixture
def net():
    return nn.Sequential(nn.Linear(20, 30), nn.ReLU(), nn.Linear(30, 3))


@pytest.fixture
def x(rng):
    return convcore.tensor(rng.standard_normal((2, 20), dtype=np.float32))


def test_it_is_called_as_the_net_and_returns_a_tuple(net, x):
    program = export(net, (x,), dynamic_shapes=({0: "n"},))
    more = convcore.cat([x, x])
    (result,) = program(more)
    assert result.equal(net(more)) and not result.requires_grad
    (result,) = program(input=more)
    assert result.equal(net(more))
    assert program.optimize() is None


def test_it_keeps_the_weights_of_the_export(net, x):
    program, expected = export(net, (x,)), net(x)
    with convcore.no_grad():
        net[0].weight.zero_()
    assert program(x)[0].equal(expected)


def test_what_it_shows(net, x):
    program = export(net, (x,), dynamic_shapes=({0: "n"},), opset_version=18)
    assert repr(program) == (
        "ONNXProgram(Sequential, opset 18: input float32[n, 20] -> output float32[n, 3])"
    )


def test_other_dtypes_have_their_own_names():
    program = export(nn.ReLU(), convcore.ones(2, dtype=convcore.float64))
    assert repr(program) == "ONNXProgram(ReLU, opset 17: input float64[2] -> output float64[2])"


def test_a_name_of_pytorchs_that_it_has_not(net, x):
    with pytest.raises(
        AttributeError, match="'ONNXProgram' object has no attribute 'model'"
    ) as error:
        export(net, (x,)).model  # noqa: B018
    assert "model_proto" in str(error.value)


def test_saving_writes_what_the_export_writes(net, x, tmp_path):
    program = export(net, (x,), tmp_path / "first.onnx")
    program.save(tmp_path / "second.onnx")
    buffer = io.BytesIO()
    program.save(buffer)
    data = (tmp_path / "first.onnx").read_bytes()
    assert data == (tmp_path / "second.onnx").read_bytes() == buffer.getvalue()
    assert load(data)(x).equal(net(x))


@pytest.mark.parametrize("by", ["export", "save"])
def test_weights_in_a_file_of_their_own(by, net, x, tmp_path):
    path = tmp_path / "net.onnx"
    if by == "save":
        export(net, (x,)).save(path, external_data=True)
    else:
        export(net, (x,), str(path), external_data=True)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["net.onnx", "net.onnx.data"]
    big = 20 * 30 * 4
    assert path.stat().st_size < big <= (tmp_path / "net.onnx.data").stat().st_size
    proto = onnx.load(path, load_external_data=False)
    entries = [{e.key: e.value for e in t.external_data} for t in proto.graph.initializer]
    places = [int(e["offset"]) for e in entries if e]
    assert len(places) == 2  # the two matrices; biases are small
    assert all(place % 4096 == 0 for place in places)
    onnx.checker.check_model(path, full_check=True)
    assert load(path)(x).equal(net(x))
    for result in runtime_results(path, x) or ():
        np.testing.assert_allclose(result, net(x).detach().numpy(), 1e-5, 1e-6)


def test_neither_file_is_replaced_if_one_cannot_be_written(net, x, tmp_path, monkeypatch):
    path, data = tmp_path / "net.onnx", tmp_path / "net.onnx.data"
    path.write_bytes(b"old")
    data.write_bytes(b"older")
    program = export(net, (x,))

    def failing(*_):
        raise RuntimeError("no more room")

    monkeypatch.setattr("convcore.onnx.program.external_data_helper.set_external_data", failing)
    with pytest.raises(RuntimeError, match="no more room"):
        program.save(path, external_data=True)
    assert (path.read_bytes(), data.read_bytes()) == (b"old", b"older")
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("by", ["export", "save"])
def test_weights_are_left_out_or_are_inputs_too(by, net, x, tmp_path):
    def written(included, are_inputs):
        path = tmp_path / "net.onnx"
        if by == "save":
            export(net, (x,)).save(
                path, include_initializers=included, keep_initializers_as_inputs=are_inputs
            )
        else:
            options = {"export_params": included, "keep_initializers_as_inputs": are_inputs}
            export(net, (x,), path, **options)
        graph = onnx.load(path).graph
        return [i.name for i in graph.initializer], [i.name for i in graph.input]

    weights = list(net.state_dict())
    assert written(True, False) == (weights, ["input"])
    assert written(True, True) == (weights, ["input", *weights])
    assert load(tmp_path / "net.onnx")(x).equal(net(x))
    assert written(False, True) == ([], ["input", *weights])
    loaded = load(tmp_path / "net.onnx")
    convcore.testing.assert_close(loaded(x, *net.state_dict().values()), net(x))
    assert written(False, False) == ([], ["input"])


def test_what_is_written_otherwise_leaves_the_program_as_it_is(net, x):
    program = export(net, (x,))
    before = program.model_proto.SerializeToString()
    program.save(io.BytesIO(), include_initializers=False, keep_initializers_as_inputs=True)
    assert program.model_proto.SerializeToString() == before


def test_destinations_of_other_kinds_are_refused(net, x):
    program = export(net, (x,))
    with pytest.raises(TypeError, match="must be a path, for external_data, got BytesIO"):
        program.save(io.BytesIO(), external_data=True)
    with pytest.raises(TypeError, match="must be a path or file object, got int"):
        program.save(3)
