"""A run that is stopped and resumed ends in the same bits as one that was not."""

import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import convcore
from convcore import nn, optim
from convcore.serialization import CheckpointError, TrainingState
from convcore.utils.data import DataLoader, TensorDataset

RUNS = Path(__file__).resolve().parents[1] / "fuzz" / "killed_runs.py"


class Run:
    """A small training run, with everything random that there is."""

    def __init__(self, width=4):
        for module in (convcore.manual_seed, np.random.seed, random.seed):
            module(3)
        self.net = nn.Sequential(
            nn.Linear(3, width), nn.BatchNorm1d(width), nn.Dropout(0.5), nn.Linear(width, 1)
        )
        self.adam = optim.Adam(self.net.parameters(), lr=np.float64(0.1))
        self.schedule = optim.lr_scheduler.CosineAnnealingLR(self.adam, 3)
        self.loader = DataLoader(TensorDataset(convcore.rand(20, 3)), 4, shuffle=True)
        self.noise = convcore.Generator().manual_seed(4)
        self.numpys = np.random.Generator(np.random.MT19937(5))
        self.pythons = random.Random(6)
        self.state = TrainingState(
            **{"model": self.net, "optimizer": self.adam, "schedule": self.schedule},
            **{"loader": self.loader, "noise": self.noise, "numpys": self.numpys},
            **{"pythons": self.pythons, "pcg": np.random.default_rng(7)},
        )

    def go(self, file=None, stop=None):
        state = self.state
        while state.epoch < 3:
            for (x,) in self.loader:
                y = self.net(x + convcore.rand(1, generator=self.noise)).mean()
                y = y * (self.numpys.random() + self.pythons.random() + np.random.rand())
                self.adam.zero_grad()
                (y * random.random()).backward()
                self.adam.step()
                state.step += 1
                state.extra["last"] = y.item()
                if state.step == stop:
                    state.save(file)
                    return None
            self.schedule.step()
            state.epoch += 1
            if state.step == stop:
                state.save(file)
                return None
        return self.values()

    def values(self):
        values = [value.tolist() for value in self.net.state_dict().values()]
        return values, self.adam.state_dict()["param_groups"], self.state.extra, self.state.step


@pytest.mark.parametrize("stop", [1, 4, 5, 7, 10])
def test_a_resumed_run_ends_in_the_same_bits(stop, tmp_path):
    whole = Run().go()
    Run().go(tmp_path / "run.pt", stop)
    again = Run()
    assert again.state.resume(str(tmp_path / "run.pt")) and again.state.step == stop
    assert again.go() == whole


def test_without_a_file_a_run_begins(tmp_path):
    run = Run()
    before = run.values()
    assert not run.state.resume(tmp_path / "run.pt")
    assert run.values() == before and run.state.epoch == 0


def changed(run, **changes):
    return {**run.state.state_dict(), **changes}


def test_what_fails_leaves_all_as_it_was(tmp_path):
    file, run = tmp_path / "run.pt", Run()
    run.go(file, 4)
    other = Run(width=5)
    other.state.step, other.state.extra = 9, {"best": 1}
    before, draws = other.values(), convcore.get_rng_state()
    with pytest.raises(RuntimeError, match="size mismatch") as caught:
        other.state.resume(file)
    assert str(caught.value).endswith("\nHint: it is the state of 'model'")
    assert other.values() == before and convcore.equal(convcore.get_rng_state(), draws)
    whole = file.read_bytes()
    for end in (0, 100, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:end])
        with pytest.raises(CheckpointError):
            run.state.resume(file)
    for wrong in ([1], {"epoch": 1}):
        convcore.save(wrong, file)
        with pytest.raises(CheckpointError, match="no training state"):
            run.state.resume(file)
    TrainingState(model=run.net).save(file)
    with pytest.raises(CheckpointError, match="training state of model; this one has model, opt"):
        run.state.resume(file)
    with pytest.raises(ValueError, match="no training state"):
        run.state.load_state_dict({})
    with pytest.raises(ValueError, match="parts are not by name"):
        run.state.load_state_dict(run.state.state_dict() | {"parts": []})
    for wrong in ({"epoch": "1"}, {"step": 1.0}, {"step": True}):
        with pytest.raises(ValueError, match=f"its {next(iter(wrong))} is"):
            run.state.load_state_dict(run.state.state_dict() | wrong)


def test_epochs_and_steps_are_ints():
    state = TrainingState()
    state.step = np.int64(3)
    assert type(state.state_dict()["step"]) is int
    state.epoch = 0.5
    with pytest.raises(TypeError, match=r"epoch: expected an int, got 0\.5"):
        state.state_dict()


def test_parts_after_a_wrong_one_are_put_back():
    run, other = Run(), Run()
    run.go(None, None)
    state = run.state.state_dict()
    before = other.values()
    state["parts"]["pcg"] = {"bit_generator": "MT19937"}
    with pytest.raises(Exception) as caught:
        other.state.load_state_dict(state)
    assert "it is the state of 'pcg'" in str(caught.value)
    assert other.values() == before


def test_parts_have_a_state():
    with pytest.raises(TypeError, match=r"data: expected something with state_dict\(\).* got list"):
        TrainingState(data=[1])
    with pytest.raises(TypeError, match=r"keyword arguments only, as in TrainingState\(model=net"):
        TrainingState(nn.Linear(1, 1))


@pytest.mark.slow
@pytest.mark.subprocess
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_killed_runs_end_in_the_same_bits():
    command = [sys.executable, str(RUNS), "--count=3", "--workers=fork"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 kills" in done.stdout


def _changed(state, path, value):
    *folders, last = path
    for key in folders:
        state = state[key]
    state[last] = value


@pytest.mark.parametrize(
    ("path", "value"),
    [
        *((("random", "numpy", 2), n) for n in (625, 10**6, -1, 2**63, 1.0, None)),
        (("random", "numpy", 1), [1] * 623),
        (("random", "numpy", 1, 5), 2**32),
        (("random", "numpy", 0), "PCG64"),
        (("random", "numpy", 3), "x"),
        (("random", "python", 1), (1,) * 624),
        (("random", "python"), None),
        (("random", "convcore"), convcore.zeros(5056, dtype=convcore.uint8)),
        (("random", "convcore"), None),
        (("random",), {}),
        (("parts", "noise"), convcore.zeros(3)),
        (("parts", "pythons"), (3, (2**40,) * 625, None)),
        (("parts", "numpys", "state", "pos"), 625),
        (("parts", "numpys", "state", "pos"), -(2**31)),
        (("parts", "numpys", "state", "key"), {"words": [0] * 625}),
        (("parts", "philox", "buffer_pos"), -1),
        (("parts", "philox", "buffer_pos"), 5),
        (("parts", "philox", "buffer"), {"words": [1, 2, 3]}),
        (("parts", "philox", "state", "counter"), {"words": [1, 2, 3, 2**64]}),
        (("parts", "sfc", "state", "state"), {"words": [1]}),
        (("parts", "pcg", "has_uint32"), 2),
        (("parts", "pcg", "state", "inc"), -1),
        (("parts", "pcg", "bit_generator"), "Philox"),
        (("parts", "pcg"), []),
    ],
)
def test_states_of_generators_from_damaged_files_are_refused(path, value, tmp_path):
    """NumPy's setters trust them: positions beyond the words would be read."""
    numpys = {
        "numpys": np.random.Generator(np.random.MT19937(1)),
        "philox": np.random.Generator(np.random.Philox(1)),
        "sfc": np.random.Generator(np.random.SFC64(1)),
        "pcg": np.random.default_rng(1),
    }
    state = TrainingState(noise=convcore.Generator(), pythons=random.Random(1), **numpys)
    state.save(tmp_path / "run.pt")
    assert state.resume(tmp_path / "run.pt")
    damaged = state.state_dict()
    damaged["random"]["python"] = list(damaged["random"]["python"])
    _changed(damaged, path, value)
    convcore.save(damaged, tmp_path / "run.pt", format="torch")
    before = state.state_dict()
    with pytest.raises(CheckpointError, match="no state of"):
        state.resume(tmp_path / "run.pt")
    assert str(state.state_dict()) == str(before)
