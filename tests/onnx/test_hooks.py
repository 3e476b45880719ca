"""Hooks on the nodes of loaded nets, and training a part of one."""

import numpy as np
import pytest

import convcore
from convcore import inspection, models, nn

onnx = pytest.importorskip("onnx", reason="needs onnx: pip install 'convcore[onnx]'")

from onnx import parser  # noqa: E402

from convcore.onnx import export, load  # noqa: E402


@pytest.fixture
def resnet(tmp_path):
    """Return a net of ResNet-50's bottlenecks, one a stage, loaded from its file."""
    convcore.manual_seed(0)
    net = models.ResNet(models.resnet.Bottleneck, (1, 1, 1, 1), num_classes=5).eval()
    export(net, (convcore.zeros(2, 3, 32, 32),), tmp_path / "net.onnx")
    return load(tmp_path / "net.onnx")


def test_hooks_of_a_resnet_fire_once_a_node_and_in_order(resnet, rng):
    forward, backward = [], []
    for name, module in resnet.named_children():
        module.register_forward_hook(lambda *_, name=name: forward.append(name))
        module.register_full_backward_hook(lambda *_, name=name: backward.append(name))
    x = convcore.tensor(rng.standard_normal((2, 3, 32, 32), dtype=np.float32), requires_grad=True)
    resnet(x).sum().backward()
    names = [name for name, _ in resnet.named_children()]
    assert forward == names
    assert sorted(backward) == sorted(names)
    # Each after all nodes that take its result.
    place = {name: k for k, name in enumerate(backward)}
    maker = {name: step.module for step in resnet.steps for name in step.outputs}
    edges = [
        (maker[each], step.module) for step in resnet.steps for each in step.inputs if each in maker
    ]
    assert len(edges) >= len(names) - 1
    assert all(place[later] < place[earlier] for earlier, later in edges)


def test_the_last_layer_of_a_resnet_is_tuned(resnet, rng):
    # The file's last node may be one that names the output.
    name, head = [each for each in resnet.named_children() if list(each[1].parameters())][-1]
    for parameter in resnet.parameters():
        parameter.requires_grad_(False)
    for parameter in head.parameters():
        parameter.requires_grad_(True)
    before = {key: value.clone() for key, value in resnet.state_dict().items()}
    optimizer = convcore.optim.SGD(head.parameters(), lr=0.01)
    x = convcore.tensor(rng.standard_normal((2, 3, 32, 32), dtype=np.float32))
    target, losses = convcore.tensor([1, 3]), []
    for _ in range(20):
        loss = nn.functional.cross_entropy(resnet(x), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]
    changed = {key for key, value in resnet.state_dict().items() if not value.equal(before[key])}
    assert changed == {f"{name}.weight", f"{name}.bias"}


def test_nodes_of_an_optimized_resnet_are_watched_by_their_names(resnet, rng):
    x = convcore.tensor(rng.standard_normal((2, 3, 32, 32), dtype=np.float32))
    fast = convcore.optimize_for_inference(resnet, x)
    with convcore.no_grad(), inspection.capture(resnet) as expected:
        plain = resnet(x)
    names = list(resnet.nodes)
    assert list(fast.model.nodes) == names and len(names) > 30
    with inspection.capture(fast, names) as found:
        fast(x)
    assert list(found) == list(expected)[:-1]
    (kind,) = fast._plans._kinds.values()
    assert None not in kind.watched.plans.values()
    for name in names:
        error = (found[name] - expected[name]).abs().max()
        assert error <= 1e-4 * expected[name].abs().max()
    with inspection.patch(fast, {names[3]: inspection.zero}):
        assert not fast(x).allclose(plain, atol=1e-3)


def test_hooks_in_branches_fire_for_the_branch_taken():
    net = load(
        parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 17]>
        branches (bool yes, float[2] x) => (float[2] y) {
            y = If (yes) <
                then_branch = one () => (float[2] a) { a = Neg(x) },
                else_branch = other () => (float[2] b) { b = Abs(x) }>
        }""")
    )
    seen = []
    for name, module in net.named_modules():
        module.register_forward_hook(lambda *_, name=name: seen.append(name))
        module.register_full_backward_hook(lambda *_, name=name: seen.append(f"-{name}"))
    x = convcore.tensor([-2.0, 3.0], requires_grad=True)
    y = net(convcore.tensor(True), x)
    assert seen == ["If_0.then_branch.Neg_0", "If_0.then_branch", "If_0", ""]
    del seen[:]
    y.sum().backward()
    assert set(seen) == {"-", "-If_0", "-If_0.then_branch", "-If_0.then_branch.Neg_0"}
    assert len(seen) == 4
    assert x.grad.tolist() == [-1.0, -1.0]


def test_hooks_in_a_loop_fire_each_step():
    net = load(
        parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 17]>
        steps (int64 n, float[2] x, float[2] w) => (float[2] y, float[k, 2] all) {
            yes = Constant <value = bool {1}> ()
            y, all = Loop (n, yes, x) <
                body = step (int64 i, bool c, float[2] s) => (bool d, float[2] t, float[2] u) {
                    d = Identity(c)
                    t = Mul(s, w)
                    u = Identity(t)
                }>
        }""")
    )
    seen = []
    body = net.get_submodule("Loop_0.body")
    body.register_forward_hook(lambda module, args, result: seen.append(len(result)))
    y, every = net(convcore.tensor(3), convcore.tensor([1.0, 2.0]), convcore.tensor([2.0, 3.0]))
    assert seen == [3, 3, 3]
    assert y.tolist() == [8.0, 54.0]
    assert every.tolist() == [[2.0, 6.0], [4.0, 18.0], [8.0, 54.0]]
