"""What docs/determinism.md promises of whole training steps; every test that it names is there."""

import ast
import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from forks import in_fork

import convcore
from convcore import nn
from convcore.nn import functional as F

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "determinism.md"


def trained(look=None, autocast=False):
    """Return a digest of all that three steps of a small net leave behind."""
    convcore.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, stride=2, groups=2),
        nn.GELU(),
        nn.Dropout(0.2),
        nn.Flatten(),
        nn.LazyLinear(10),
    )
    images, labels = convcore.randn(16, 3, 20, 20), convcore.randint(0, 10, (16,))
    net(images)
    if look is not None:
        look(net)
    optimizer = convcore.optim.AdamW(net.parameters(), lr=0.01)
    for _ in range(3):
        optimizer.zero_grad()
        with convcore.autocast("cpu", dtype=convcore.bfloat16, enabled=autocast):
            loss = F.cross_entropy(net(images), labels)
        loss.backward()
        optimizer.step()
    digest = hashlib.sha256(loss.detach().numpy().tobytes())
    for value in net.state_dict().values():
        digest.update(value.numpy().tobytes())
    for state in optimizer.state.values():
        for key in ("step", "exp_avg", "exp_avg_sq"):
            digest.update(state[key].numpy().tobytes())
    return digest.hexdigest()


def test_training_has_the_same_bits_for_any_number_of_threads(threads):
    digests = set()
    for count in (1, 2, 3, 8):
        threads(count)
        digests.add(trained())
    assert len(digests) == 1


def test_autocast_has_the_same_bits_for_any_number_of_threads(threads):
    pytest.importorskip("ml_dtypes")
    digests = set()
    for count in (1, 2, 3, 8):
        threads(count)
        digests.add(trained(autocast=True))
    assert len(digests) == 1
    assert digests != {trained()}


@pytest.mark.subprocess
@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_training_has_the_same_bits_in_another_process(hash_seed):
    folders = [str(ROOT / "tests"), str(ROOT / "tests" / "helpers")]
    code = f"import sys; sys.path[:0] = {folders!r}\nimport test_determinism as t"
    printed = subprocess.run(
        [sys.executable, "-P", "-c", f"{code}\nprint(t.trained())"],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert printed.stdout.strip() == trained()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_training_has_the_same_bits_in_a_forked_child(threads):
    threads(2)
    assert in_fork(trained) == trained()


def test_hooks_that_only_look_change_no_bit():
    seen = []

    def of_node(output):
        output.grad_fn.register_prehook(lambda grads: seen.append("before the node"))
        output.grad_fn.register_hook(lambda inputs, outputs: seen.append("after the node"))

    def look(net):
        for module in list(net)[1:]:  # the first one's input needs no gradient
            module.register_forward_pre_hook(lambda m, inputs: seen.append("before"))
            module.register_forward_hook(lambda m, inputs, output: seen.append("forward"))
            module.register_forward_hook(lambda m, inputs, output: of_node(output))
            module.register_full_backward_hook(lambda m, inputs, grads: seen.append("backward"))
        for parameter in net.parameters():
            parameter.register_hook(lambda grad: seen.append("gradient"))
            parameter.register_post_accumulate_grad_hook(lambda p: seen.append("accumulated"))

    with convcore.autograd.graph.saved_tensors_hooks(
        lambda tensor: (seen.append("packed"), tensor)[1], lambda tensor: tensor
    ):
        watched = trained(look)
    assert watched == trained()
    of_modules, of_nodes = {"before", "forward", "backward"}, {"before the node", "after the node"}
    assert set(seen) == of_modules | of_nodes | {"gradient", "accumulated", "packed"}


def test_every_test_that_the_page_names_is_there():
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE.read_text(encoding="utf-8"))
    assert len(named) >= 10
    for file, name in named:
        tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        assert name in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
