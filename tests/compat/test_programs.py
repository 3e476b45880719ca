"""Programs in the manner of PyTorch's tutorials run on convcore, and print what PyTorch prints.

Each program seeds its random numbers, prints its progress, and ends by asserting that it has got
anywhere: a loss that falls, an accuracy.  It does not know which library it runs on.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from fork_server import ForkServer
from printed import assert_same_numbers, last_place

import convcore

pytestmark = pytest.mark.subprocess

TESTS = Path(__file__).parents[1]
PROGRAMS = {file.stem: file for file in sorted((TESTS / "programs").glob("*.py"))}
# The half that takes longer.
SLOW = {
    *("actor_critic", "autoencoder", "char_rnn", "checkpoint_resume", "cifar_resnet"),
    *("conditional_vae", "distillation", "fgsm", "flow", "gaussian_mixture", "gru_packed"),
    *("lstm_series", "mnist_cnn", "pinn", "reinforce", "seq2seq_attention", "siamese", "vae"),
}


# What programs load, before they are forked: PyTorch's optimizers load its compiler.
CONVCORE = ("cli", "compat", "nn", "optim", "utils.data")
PYTORCH = ("torch", "torch._dynamo", "torch.profiler")


@pytest.fixture(scope="module")
def convcore_server() -> Iterator[ForkServer]:
    with ForkServer(*(f"convcore.{name}" for name in CONVCORE), "sklearn.datasets") as server:
        yield server


@pytest.fixture(scope="module")
def pytorch_server() -> Iterator[ForkServer]:
    with ForkServer(*PYTORCH, "sklearn.datasets") as server:
        yield server


def printed_by(server: ForkServer, folder: Path, *arguments: object) -> str:
    """Return what a program prints."""
    done = server.run(*arguments, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def named(*, slow: bool) -> list:
    """Return the programs as parameters."""
    marks = [pytest.mark.slow] if slow else []
    return [pytest.param(PROGRAMS[n], id=n, marks=marks) for n in PROGRAMS if (n in SLOW) == slow]


@pytest.mark.parametrize("program", named(slow=False) + named(slow=True))
def test_a_program_runs_and_prints_what_pytorch_prints(program, tmp_path, convcore_server, request):
    if "from sklearn" in program.read_text():
        pytest.importorskip("sklearn")
    ours = printed_by(convcore_server, tmp_path, "-P", "-m", "convcore", "run", program)
    if importlib.util.find_spec("torch") is None:
        return
    if re.search("ropout|bernoulli", program.read_text()) and not coins_are_pytorchs():
        return
    theirs = printed_by(request.getfixturevalue("pytorch_server"), tmp_path, program)
    assert_same_numbers(ours, theirs)


def coins_are_pytorchs() -> bool:
    """Return whether PyTorch draws coins itself; on Intel's processors it asks MKL."""
    import torch

    coins = torch.empty(64).bernoulli_(0.5, generator=torch.Generator().manual_seed(1))
    ours = convcore.empty(64).bernoulli_(0.5, generator=convcore.Generator().manual_seed(1))
    return coins.tolist() == ours.tolist()


def test_other_numbers_and_texts_are_seen():
    assert_same_numbers("loss 1.00001 [ 0.5], 3", "loss 1.0000 [0.5], 3")
    assert_same_numbers("tensor([-0.0000])", "tensor([0.0000])")
    for other in ("loss 1.0002 [0.5], 3", "loss 1.0000 [0.5], 4", "lass 1.0000 [0.5], 3"):
        with pytest.raises(AssertionError):
            assert_same_numbers("loss 1.0000 [0.5], 3", other)
    assert last_place("-1.20e-03") == pytest.approx(1e-5) and last_place("12.") == 1
