"""Plans beside ONNX Runtime's profiles: which steps and nodes share a line, and what is told."""

import json

import pytest

import convcore
from convcore import inspection, nn
from convcore.inspection.profiling._onnxruntime import OtherNode, matched, read
from convcore.inspection.profiling._tree import ProfileRow


def step(*layers):
    return ProfileRow(" + ".join(layers), "relu", False, is_step=True, layers=layers)


def pairs(steps, names, by_output=()):
    others = [OtherNode(name, "Op", 1.0) for name in names]
    return [
        ([row.name for row in match.steps], [one.name for one in match.others])
        for match in matched(steps, others, dict(by_output))
    ]


def test_nodes_match_by_their_name_an_output_or_a_part_of_a_composed_name():
    steps = [step("conv", "bn"), step("add"), step("mul"), step("view")]
    names = ["y_nchwc", "add", "mul+relu", "ReorderOutput_token_3"]
    assert pairs(steps, names, [("y", "bn")]) == [
        (["conv + bn"], ["y_nchwc"]),
        (["add"], ["add"]),
        (["mul"], ["mul+relu"]),
        (["view"], []),
        ([], ["ReorderOutput_token_3"]),
    ]


def test_steps_of_one_node_share_its_line():
    assert pairs([step("lstm"), step("relu"), step("lstm")], ["lstm", "relu"]) == [
        (["lstm", "lstm"], ["lstm"]),
        (["relu"], ["relu"]),
    ]


def event(name, dur, cat="Node"):
    return {"name": name, "dur": dur, "cat": cat, "args": {"op_name": "Relu"}}


def test_the_first_of_several_runs_is_left_out(tmp_path):
    run = event("model_run", 9, "Session")
    events = [event("a_kernel_time", 900), run, event("a_kernel_time", 2), run]
    path = tmp_path / "profile.json"
    path.write_text(json.dumps([*events, event("a_kernel_time", 4), run]))
    assert read(path) == [OtherNode("a", "Relu", pytest.approx(3e-6))]
    path.write_text(json.dumps({"traceEvents": []}))
    with pytest.raises(ValueError, match="no nodes of a profile by ONNX Runtime"):
        read(path)


def test_a_table_has_both_times_and_tells_what_has_no_match(tmp_path):
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AvgPool2d(2)).eval()
    fast = convcore.optimize_for_inference(net, x := convcore.rand(1, 3, 8, 8))
    fast(x)
    with inspection.profile(fast) as found:
        fast(x)
    path = tmp_path / "profile.json"
    path.write_text(json.dumps([event("0_kernel_time", 7e6), event("ReorderInput_kernel_time", 5)]))
    lines = found.table(beside=path).splitlines()
    (conv,) = [line for line in lines if line.endswith("0 + 1")]
    (pool,) = [line for line in lines if line.endswith(" 2")]
    assert " 7000.000 " in conv and " - " in pool
    assert any(line.rstrip().endswith("1 Relu: no match") for line in lines)
    assert any(line.startswith("- no match: ONNX Runtime") for line in lines)
    assert max(map(len, lines)) <= 100


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_every_node_of_onnx_runtime_but_its_own_is_matched(tmp_path, capsys):
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    import numpy as np

    from convcore.cli import main

    net, x = convcore.models.resnet18(num_classes=5).eval(), convcore.rand(1, 3, 32, 32)
    convcore.onnx.export(net, x, tmp_path / "net.onnx")
    np.save(tmp_path / "x.npy", x.numpy())
    trace = tmp_path / "trace.json"
    given = [str(tmp_path / name) for name in ("net.onnx", "x.npy")]
    assert main(["run-model", given[0], "-i", given[1], "--profile", str(trace)]) == 0
    table = capsys.readouterr().out
    unmatched = [line for line in table.splitlines() if line.endswith(": no match")]
    assert all("Reorder" in line or "Flatten" in line for line in unmatched), table
    assert "/layer1/0/conv2/Conv" in " ".join(table.split())
    events = json.loads(trace.read_text())["traceEvents"]
    assert len([one for one in events if one.get("cat") == "step"]) == 230
