"""PyTorch's SummaryWriter is tensorboardX's, given arrays for tensors."""

import importlib
import sys
import types

import numpy as np
import pytest

import convcore
from convcore import utils

NAME = "convcore.utils.tensorboard"
MODULES = (NAME, f"{NAME}.writer")


class Writer:
    """What tensorboardX's has, as far as it is looked at here."""

    def __init__(self, log_dir=None):
        self.logdir, self.seen = log_dir, []

    def add_scalar(self, *args):
        self.seen.append(args)

    def add_hparams(self, *args, **kwargs):
        self.seen.append((*args, kwargs))

    def add_scalars(self, tag, values, global_step=None):
        self.seen.append((tag, values, global_step))


@pytest.fixture
def package(monkeypatch):
    """Put a package in tensorboardX's place, and import its users anew."""

    def put(found):
        monkeypatch.setitem(sys.modules, "tensorboardX", found)
        for name in MODULES:
            monkeypatch.delitem(sys.modules, name, raising=False)
        monkeypatch.delattr(utils, "tensorboard", raising=False)

    yield put
    for name in MODULES:
        sys.modules.pop(name, None)
    vars(utils).pop("tensorboard", None)


def test_tensors_are_written_as_arrays(package):
    made = types.ModuleType("tensorboardX")
    made.SummaryWriter = Writer
    package(made)
    writer = importlib.import_module(NAME).SummaryWriter("runs")
    writer.add_scalars("loss", {"a": convcore.ones(2, requires_grad=True)}, global_step=3)
    ((tag, values, step),) = writer.seen
    assert writer.log_dir == "runs" and (tag, step) == ("loss", 3)
    assert type(values["a"]) is np.ndarray and values["a"].tolist() == [1, 1]
    with pytest.warns(UserWarning, match=r"add_graph\(\) writes nothing: .*pictures\.graph"):
        writer.add_graph(convcore.nn.ReLU())
    assert type(writer) is importlib.import_module(f"{NAME}.writer").SummaryWriter


def test_the_package_that_is_missing_is_named(package):
    package(None)
    with pytest.raises(ModuleNotFoundError, match="pip install tensorboardX"):
        importlib.import_module(NAME)
    assert not hasattr(utils, "tensorboard")


def test_pytorchs_other_arguments_are_taken(package):
    made = types.ModuleType("tensorboardX")
    made.SummaryWriter = Writer
    package(made)
    writer = importlib.import_module(NAME).SummaryWriter("runs")
    assert writer.get_logdir() == "runs"
    writer.add_scalar("loss", convcore.ones(()), 3, new_style=True)
    writer.add_hparams({"lr": 0.1}, {"loss": convcore.ones(())}, run_name="one")
    assert writer.seen == [
        ("loss", np.ones(()), 3, None),
        ({"lr": 0.1}, {"loss": np.ones(())}, {"name": "one", "global_step": None}),
    ]
    with pytest.raises(NotImplementedError, match="add_histogram"):
        writer.add_tensor("t", convcore.ones(2))
