"""Random programs give what PyTorch gives; the short form.

The long form is ``python tests/fuzz/programs.py --count 1000``.
"""

import os
import re
import signal
import types

import pytest
from scripts import fuzz_script

import convcore

programs = fuzz_script("programs")

PROGRAMS = 80


def test_random_programs_agree_with_pytorch(torch):
    assert [what for what in map(programs.compared, range(PROGRAMS)) if what] == []


# Programs that differed once.
MENDED = (
    "v0 = lib.sub(lib.ones(2), lib.ones(2, dtype=lib.uint8), alpha=-2)",
    "v0 = lib.zeros(2, dtype=lib.uint8); v0.__setitem__(0, -1.5)",
    "v0 = 3 ** lib.tensor([-1, 0, 2])",
    "v0 = lib.tensor([1, -1, 2, 0]) ** lib.tensor([-1, -3, -2, -1])",
    "v0 = leaf(1, 'float32', (2,), True); v1 = lib.div(v0, v0, rounding_mode='floor')",
    "v0 = leaf(67291, 'float64', (4, 3), True); v1 = lib.linalg.vector_norm(v0, -1, 1)",
    "v0 = leaf(7, 'float64', (3,), True); v1 = F.mse_loss(v0, lib.ones(3, dtype=lib.bool))",
    "v0 = leaf(6, 'float64', (4,), True); v1 = lib.logit(v0)",
    "v0 = lib.hypot(lib.ones(2, dtype=lib.bool), lib.ones(2))",
    "v0 = lib.xlogy(lib.tensor(1.5, dtype=lib.float64), lib.ones(2, dtype=lib.long))",
    "v0 = lib.median(lib.zeros(3, 0, dtype=lib.int32))",
    "v0 = lib.ones(2, dtype=lib.bool); v1 = v0.sub_(v0)",
    "v0 = lib.ones(2); v1 = v0.sub_(lib.ones(2, dtype=lib.bool))",
    "v0 = lib.ones(2); v1 = v0.sub_(True)",
    "v0 = lib.lerp(lib.ones(2), lib.zeros(2), lib.tensor(1j))",
    "v0 = lib.lerp(lib.ones(()), lib.ones(2), lib.ones(4, 3))",
    "v0 = lib.ones(2, 3, dtype=lib.bool).sum_to_size(1)",
    "v0 = lib.ones(2, 3, dtype=lib.int32).sum_to_size(2, 1)",
    "v0 = lib.ones(2, dtype=lib.bool).sum_to_size(2)",
    "v0 = lib.add(lib.ones(2, dtype=lib.bool), lib.ones(2, dtype=lib.bool), alpha=2)",
    "v0 = lib.zeros(2, dtype=lib.bool); v1 = v0.add_(lib.ones(2, dtype=lib.bool), alpha=-1)",
    "v0 = F.gaussian_nll_loss(lib.ones(2), lib.ones(2), lib.ones(2, dtype=lib.bool))",
    "v0 = leaf(8, 'float32', (2, 1, 1)); v1 = leaf(9, 'float32', (2, 1), True); "
    "v2 = F.linear(v0, v1); v3 = v2.register_hook(lambda g: lib.zeros_like(g)); v4 = v2.atan_()",
    "v0 = leaf(6, 'float32', (3,), True); v1 = leaf(7, 'float32', (), True); v2 = 0 ** v1 / v0",
    "v0 = lib.zeros(1, 0, dtype=lib.int64); v1 = v0 // 0",
    "v0 = leaf(8, 'float32', (2, 3), True); v1 = lib.broadcast_tensors(v0, lib.ones(3))[0]; "
    "v2 = v0 * 2; v3 = v1.register_hook(lambda g: lib.zeros_like(g))",
    "v0 = lib.lgamma(lib.tensor([-float('inf'), -1.0]))",
    "v0 = leaf(6, 'float32', (1, 3), True); v1 = v0 * 2; "
    "v2 = v1.register_hook(lambda g: log.append(tuple(g.shape))); "
    "v3 = v1.__setitem__((slice(-1, None),), 1)",
    "v0 = leaf(6, 'float64', (1, 4)); v1 = leaf(7, 'float64', (4,), True); "
    "v2 = v0.add_(v1, alpha=2); v4 = v0.register_hook(lambda g: g.neg())",
    "v0 = lib.addcmul(lib.ones(2), lib.tensor([100, 2], dtype=lib.int8), "
    "lib.tensor([100, 3], dtype=lib.int8))",
    "v0 = lib.addcdiv(lib.ones(2), leaf(6, 'float64', ()), lib.ones(2, dtype=lib.int32))",
    "v0 = lib.any(lib.ones(1, 3), dim=[])",
    "v0 = lib.all(lib.zeros(1, 3), dim=(), keepdim=True)",
    "v0 = lib.angle(lib.tensor([-1.0, 2.0]).bfloat16())",
    "v0 = lib.sign(lib.tensor([float('nan'), -2.0]).bfloat16())",
    "v0 = lib.signbit(lib.tensor([-0.0, 0.0]).bfloat16())",
    "v0 = lib.copysign(lib.ones(2, dtype=lib.int8), lib.tensor([-1.0, 2.0]).bfloat16())",
    *(
        f"v0 = leaf(6, 'float32', (3, 3), True); v1 = leaf(7, 'float32', (3,), True); "
        f"v2 = under('bfloat16', lambda: {call})"
        for call in (
            "lib.einsum('ij->ji', v0)",
            "lib.einsum('i,j->ij', v1, v1)",
            "lib.einsum('ij,jk->ik', v0, v0.bfloat16())",
            "lib.tensordot(v0[:1], v0[:1], dims=([0], [0]))",
        )
    ),
    "v0 = leaf(703401, 'float64', (4, 2, 3), True); v1 = F.adaptive_avg_pool1d(v0, 2); "
    "v2 = v1.register_hook(lambda g: log.append(tuple(g.shape))); v3 = v1.relu_()",
    "v0 = lib.ones(2, 0, 1); v1 = F.scaled_dot_product_attention(v0, v0, lib.ones(2, 3, 1))",
    "v0 = leaf(433270, 'float32', (4, 3)).unfold(0, 2, 1); v1 = F.elu(v0, inplace=True)",
    "v0 = leaf(964578, 'float64', (3, 1)); v1 = lib.cross(v0, v0); v2 = v1 != 0",
    "v0 = leaf(85065, 'float64', (3, 4, 2), True); "
    "v1 = F.interpolate(v0, size=3, mode='linear', align_corners=False); v2 = v1.reciprocal_()",
    "v0 = under('float16', lambda: lib.einsum('i,i->', lib.ones(4), lib.ones(1)))",
    "v0 = leaf(60896, 'float64', (1, 1), True); v1 = v0 * 2; v2 = v1.retain_grad(); "
    "v3 = lib.linalg.det(v1)",
    "v0 = leaf(816466, 'float64', (3, 0, 2), True); v1 = F.adaptive_avg_pool1d(v0, 2)",
    "v0 = leaf(893537, 'int64', (3, 2, 4)); v1 = lib.split(v0, 1, 1)[0]; "
    "v2 = v0.addcmul_(v1, leaf(805786, 'int64', (3, 2, 1)))",
    "v0 = leaf(236247, 'float32', (1, 1, 2)).expand((2, 2, -1)); v1 = lib.median(v0, 0)[0]",
    "v0 = leaf(831203, 'int32', (1, 3)); v1 = v0.unfold(1, 2, 1); v2 = v1.add_(-1)",
    "v0 = leaf(350678, 'float32', (2, 3)); v1 = lib.zeros(3); "
    "v2 = v1.__setitem__((lib.arange(3) > 1,), v0)",
    "v0 = leaf(3, 'float32', (4, 3, 1), True); v1 = F.adaptive_avg_pool1d(v0, 2); "
    "v2 = v1.register_hook(lambda g: g.neg()); v3 = v1.__setitem__((slice(-2, None), ...,), 1)",
    *(f"v0 = lib.{name}(leaf(6, 'complex64', (3,)), 0)" for name in ("max", "argmin", "sort")),
)


@pytest.mark.parametrize("line", MENDED)
def test_programs_that_differed_once_agree(torch, line):
    assert programs.difference(convcore, torch, line.split("; ")) is None


def test_a_seed_draws_the_same_program_again(torch):
    first, second = (programs.Draw(torch, 7).lines for _ in range(2))
    assert first == second and len(first) > 5


@pytest.mark.parametrize(
    ("lines", "what"),
    [
        (["lib.ones(2)", "lib.ones(3)"], "size (2,), not (3,)"),
        (["lib.ones(2)", "lib.ones(2).double()"], "dtype float32, not float64"),
        (["lib.ones(2)", "lib.zeros(2)"], "value 1.0 at (0,), not 0.0"),
        (["lib.ones(2)", "lib.ones(2) @ lib.ones(3)"], "does not raise"),
        (["lib.ones(2).reshape(3)", "lib.ones(2)"], "raises RuntimeError"),
        (["lib.ones(2).sum(4)", "lib.ones(2).reshape(3)"], "IndexError"),
    ],
)
def test_differences_are_told(torch, lines, what):
    ours, theirs = (
        programs.ran(library, [f"v0 = {line}"])[f"v0 = {line}"]
        for library, line in zip((convcore, torch), lines, strict=True)
    )
    assert programs._unlike(ours, theirs, "v0").startswith(what)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_program_that_ends_the_process_is_told_and_the_next_one_is_run(monkeypatch, capfd):
    def compared(seed):
        if seed == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return "differs" if seed == 4 else ""

    monkeypatch.setattr(programs, "compared", compared)
    monkeypatch.setattr(programs, "_ours_alone", lambda seed: False)
    assert programs.told(0, 5) == (3, 0)
    assert programs.told(3, 5) == (5, 1)
    monkeypatch.setattr(programs, "_ours_alone", lambda seed: os.kill(os.getpid(), signal.SIGKILL))
    assert programs.told(2, 5) == (3, 1)
    assert capfd.readouterr().out.splitlines() == [
        "2: PyTorch ends the process, code -9",
        "4: differs",
        "2: convcore ends the process, code -9",
    ]


def test_what_does_not_matter_is_left_out_of_a_program():
    lines = ["v0 = 1", "v1 = 2", "v2 = v0 + 1", "v3 = v1 * v1"]
    assert programs.minimal(lambda rest: lines[2] in rest, lines) == ["v0 = 1", "v2 = v0 + 1"]


def test_an_explanation_holds_where_the_shortest_program_has_its_line(torch, monkeypatch):
    """What is seen at a program's end is drawn into by every line, of which many explain much."""
    wrong = types.SimpleNamespace(**vars(convcore))
    wrong.sin = lambda x: convcore.sin(x).detach() + x - x.detach()  # a derivative of 1
    known = [(re.compile("tanh"), re.compile("gradient"), "a test")]
    monkeypatch.setattr(programs.program_differences, "KNOWN", known)
    leaf = "v0 = leaf(3, 'float64', (2,), True)"
    beside = [leaf, "v1 = lib.tanh(v0)", "v2 = lib.sin(v0)"]
    assert programs.difference(wrong, torch, beside)[0] == "gradient 0"
    within = [leaf, "v1 = lib.sin(v0)"]
    assert programs.difference(wrong, torch, within)[0] == "gradient 0"
    known[0] = (re.compile("sin"), *known[0][1:])
    assert programs.difference(wrong, torch, beside) is None


def test_explanations_of_empty_tensors_hold_for_those_alone(torch):
    line = "v2 = lib.matmul(v0, v1)"
    for rows, explained in ((0, True), (2, False)):
        leaves = [f"v{n} = leaf(3, 'int64', ({rows}, 2)[:: {1 - 2 * n}])" for n in range(2)]
        seen = programs.ran(torch, [*leaves, line])
        assert programs._is_of_nothing(line, [*leaves, line], seen) == explained
        what = f"{line}: raises NotImplementedError : \"mm\" not implemented for 'Bool'"
        reason = programs.program_differences.reason([line], what, None, explained)
        assert bool(reason) == explained
