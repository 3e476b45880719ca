"""An optimised net's state is that of the net after the same calls; runs of no user leave none."""

from __future__ import annotations

import collections
import contextlib
import logging
import random
import signal
import sys
import time

import numpy as np
import pytest

import convcore
from convcore import inspection, nn, optimize_for_inference
from convcore.inference.hidden_runs import HiddenRun, State, UnrepeatableError
from convcore.nn import functional as F

SEEN: list[int] = []
TOTAL = 0


class Slotted:
    __slots__ = ("count",)

    def __init__(self):
        self.count = 0


class Net(nn.Module):
    """A net with a convolution that can be fused, and a state."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 4, 3, bias=False), nn.BatchNorm2d(4)
        self.drop = nn.Dropout(0.5)
        self.prepare()

    def prepare(self):
        pass

    def forward(self, x):
        return F.relu(self.norm(self.conv(x))) + self.number(x)

    def number(self, x):
        return 0

    def state(self):
        return None


def net_with(state, prepare=None):
    """Return a class of nets: ``number`` changes the state that ``state`` reads."""

    def decorate(number):
        def read(self):
            return state(self)

        members = {"number": number, "state": read}
        if prepare is not None:
            members["prepare"] = prepare
        return type(number.__name__, (Net,), members)

    return decorate


def buffer(self):
    self.register_buffer("n", convcore.zeros(1))


@net_with(lambda self: self.n.tolist(), buffer)
def a_buffer_in_place(self, x):
    return self.n.add_(1)


@net_with(lambda self: self.n.tolist(), buffer)
def another_buffer(self, x):
    self.n = self.n + 1
    return self.n


@net_with(lambda self: self.n.tolist(), buffer)
def a_buffer_by_numpy(self, x):
    self.n.numpy()[0] += 1
    return float(self.n.numpy()[0])


def weight(self):
    self.weight = nn.Parameter(convcore.zeros(1))


@net_with(lambda self: self.weight.tolist(), weight)
def a_parameter(self, x):
    with convcore.no_grad():
        self.weight.add_(1)
    return self.weight


@net_with(lambda self: self.count, lambda self: setattr(self, "count", 0))
def an_attribute(self, x):
    self.count += 1
    return self.count


@net_with(lambda self: self.count, lambda self: setattr(self, "count", 0))
def an_attribute_that_no_result_shows(self, x):
    self.count += 1
    return 0


@net_with(lambda self: getattr(self, "cache", None))
def an_attribute_that_was_not_there(self, x):
    self.cache = getattr(self, "cache", 0) + 1
    return self.cache


@net_with(lambda self: list(self.log), lambda self: setattr(self, "log", []))
def a_list(self, x):
    self.log.append(tuple(x.shape))
    return len(self.log)


@net_with(lambda self: dict(self.log), lambda self: setattr(self, "log", collections.Counter()))
def a_counter(self, x):
    self.log[len(x)] += 1
    return self.log[len(x)]


@net_with(
    lambda self: [list(self.log[0]), set(self.log[1]), self.log[2].count],
    lambda self: setattr(self, "log", (collections.deque([0], 3), set(), Slotted())),
)
def objects_in_a_tuple(self, x):
    queue, members, slotted = self.log
    queue.append(queue[-1] + 1)
    members.add(queue[-1])
    slotted.count += 1
    return queue[-1] + len(members)


@net_with(lambda self: SEEN[:])
def a_list_of_the_module(self, x):
    SEEN.append(len(SEEN))
    return len(SEEN)


@net_with(lambda self: TOTAL)
def a_variable_of_the_module(self, x):
    global TOTAL
    TOTAL += 1
    return TOTAL


@net_with(lambda self: vars(type(self)).get("calls"))
def an_attribute_of_the_class(self, x):
    type(self).calls = getattr(type(self), "calls", 0) + 1
    return type(self).calls


def variables_of_a_closure():
    count, log = 0, []

    @net_with(lambda self: [count, log[:]])
    def closure(self, x):
        nonlocal count
        count += 1
        log.append(count)
        return count

    return closure()


@net_with(lambda self: convcore.get_rng_state().tolist())
def random_numbers(self, x):
    return convcore.rand(1)


@net_with(lambda self: [random.getstate(), np.random.get_state()[2]])
def random_numbers_of_python_and_numpy(self, x):
    return random.random() + np.random.rand()


@net_with(
    lambda self: self.draw.bit_generator.state,
    lambda self: setattr(self, "draw", np.random.default_rng(0)),
)
def a_generator_of_its_own(self, x):
    return self.draw.random()


@net_with(lambda self: self.norm.running_mean.tolist())
def a_batch_norm_that_trains(self, x):
    y = self.conv(x)
    return F.batch_norm(y, self.norm.running_mean, self.norm.running_var, training=True).mean()


@net_with(lambda self: convcore.get_rng_state().tolist())
def dropout(self, x):
    return F.dropout(x, training=True).sum()


@net_with(lambda self: None)
def prints(self, x):
    print("called")
    return 1


@net_with(lambda self: None)
def logs(self, x):
    logging.getLogger("a net").error("called")
    return 1


@net_with(lambda self: None)
def the_time(self, x):
    return time.perf_counter() * 0


@net_with(lambda self: None, lambda self: setattr(self, "numbers", iter(range(100))))
def an_iterator(self, x):
    return next(self.numbers)


STATEFUL = [
    *(a_buffer_in_place, another_buffer, a_buffer_by_numpy, a_parameter, an_attribute),
    *(an_attribute_that_no_result_shows, an_attribute_that_was_not_there, a_list, a_counter),
    *(objects_in_a_tuple, a_list_of_the_module, a_variable_of_the_module),
    *(
        an_attribute_of_the_class,
        variables_of_a_closure,
        random_numbers,
        random_numbers_of_python_and_numpy,
    ),
    *(a_generator_of_its_own, a_batch_norm_that_trains, dropout, prints, logs, the_time),
]


def restart():
    """Set what the nets here have in common as at the beginning."""
    global TOTAL
    TOTAL = 0
    SEEN.clear()
    for cls in STATEFUL:
        if hasattr(cls, "calls"):
            del cls.calls
    convcore.manual_seed(0)
    random.seed(0)
    np.random.seed(0)


def outcome(make, capsys, n_calls=3):
    """Return results, the net's state and the output after each call."""
    found = []
    net, run = make()
    for number in range(n_calls):
        convcore.manual_seed(number)
        with convcore.no_grad():
            result = run(convcore.linspace(-1, 1, 2 * 3 * 8 * 8).view(2, 3, 8, 8)).numpy()
        found.append((result, net.state(), len(capsys.readouterr().out)))
    return found


@pytest.mark.parametrize("example", [False, True], ids=["at the first call", "by an example"])
@pytest.mark.parametrize(
    ("cls", "inplace"),
    # An iterator cannot be copied with the net.
    [*((cls, inplace) for cls in STATEFUL for inplace in (False, True)), (an_iterator, True)],
)
def test_an_optimised_net_has_the_state_of_the_net(cls, inplace, example, capsys):
    def plain():
        restart()
        net = cls().eval()
        return net, net

    def optimised():
        restart()
        examples = [convcore.ones(1, 3, 8, 8)] * example
        fast = optimize_for_inference(cls().eval(), *examples, inplace=inplace)
        return fast.model, fast

    expected, found = outcome(plain, capsys), outcome(optimised, capsys)
    for (result, state, output), (wanted, wanted_state, wanted_output) in zip(
        found, expected, strict=True
    ):
        np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-5)
        assert repr(state) == repr(wanted_state)
        assert output == wanted_output


def test_nets_without_a_state_are_planned_all_the_same():
    fast = optimize_for_inference(Net().eval(), convcore.ones(1, 3, 8, 8))
    fast(convcore.ones(1, 3, 8, 8))
    assert any(fast._plans._kinds.values()) and "1 of 1" in repr(fast)


@pytest.mark.parametrize("cls", STATEFUL, ids=lambda cls: cls.__name__)
def test_a_summary_and_an_export_leave_the_state(cls, capsys):
    pytest.importorskip("onnx")
    restart()
    net, x = cls(), convcore.ones(2, 3, 8, 8)
    net.drop.eval()
    modes = [module.training for module in net.modules()]
    before, state = State(net), repr(net.state())
    convcore.summary(net, x)
    with contextlib.suppress(convcore.onnx.OnnxError):
        convcore.onnx.export(net, (x,))
    with pytest.raises(RuntimeError):
        convcore.summary(net, (1, 2, 8, 8))
    before.restore()
    assert not before.changed and [module.training for module in net.modules()] == modes
    draws = (random_numbers, random_numbers_of_python_and_numpy, dropout)
    assert cls in draws or repr(net.state()) == state


@pytest.mark.parametrize("context", [inspection.capture, inspection.profile, inspection.patch])
def test_contexts_call_a_net_as_often_as_their_users(context):
    net = an_attribute().eval()
    with context(net):
        net(convcore.ones(1, 3, 8, 8))
    assert net.count == 1


def test_hooks_are_called_as_often_as_those_of_the_net():
    counts = collections.Counter()
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten()).eval()
    for name, layer in net.named_modules():
        layer.register_forward_hook(lambda *_, name=name: counts.update([name]))
        layer.register_forward_pre_hook(lambda *_, name=name: counts.update([name]))
    fast = optimize_for_inference(net, convcore.ones(1, 3, 8, 8), inplace=True)
    assert not counts
    for _ in range(3):
        fast(convcore.ones(1, 3, 8, 8))
    assert counts == dict.fromkeys(["", "0", "1", "2", "3"], 6)


def test_an_error_of_a_hidden_run_leaves_the_state():
    net = an_attribute().eval()
    with pytest.raises(RuntimeError):
        optimize_for_inference(net, convcore.ones(1, 2, 8, 8), inplace=True)
    assert net.count == 0


def test_effects_outside_end_a_hidden_run_before_they_come(capsys, tmp_path):
    file = tmp_path / "a"

    class Writes(Net):
        def number(self, x):
            try:
                file.write_text("called")
            except Exception:
                return 0
            return 1

    for net in (prints().eval(), Writes().eval()):
        with pytest.raises(UnrepeatableError), HiddenRun(net):
            net(convcore.ones(1, 3, 8, 8))
    assert not capsys.readouterr().out and not file.exists()


def test_a_profiler_of_python_goes_on():
    seen = []

    def note(frame, event, argument):
        seen.append(event)

    sys.setprofile(note)
    try:
        with HiddenRun(Net()):
            pass
        assert sys.getprofile() is note
    finally:
        sys.setprofile(None)


def test_an_error_of_a_signals_handler_is_the_users():
    """Not taken for one of the net's, after which the net runs without a plan."""

    def handle(number, frame):
        raise TimeoutError("too late")

    class Waits(nn.Module):
        def forward(self, x):
            if armed:
                signal.raise_signal(signal.SIGTERM)
            return x * 2

    armed, x = [], convcore.ones(1, 3, 9, 9)
    fast = optimize_for_inference(Waits(), convcore.ones(1, 3, 8, 8))
    before = signal.signal(signal.SIGTERM, handle)
    try:
        armed.append(1)
        with pytest.raises(TimeoutError, match="too late"):
            fast(x)
    finally:
        signal.signal(signal.SIGTERM, before)
    armed.clear()
    fast(x)
    assert all(fast._plans._kinds.values())
