"""watch: losses, gradients and dead units of a loop, against what the loop itself has."""

import math
import sys
import threading

import pytest

import convcore
from convcore import inspection, models, nn, overrides
from convcore.inspection.live import views
from convcore.inspection.live.report import Layer, Report
from convcore.nn import functional as F
from convcore.nn.modules import _hooks
from convcore.optim import optimizer as optimizers


class Net(nn.Module):
    """A shared ReLU, one as a function, and a channel that is never above zero."""

    def __init__(self):
        super().__init__()
        self.conv, self.relu = nn.Conv2d(1, 4, 3), nn.ReLU(inplace=True)
        self.body = nn.Sequential(nn.Linear(16, 8), self.relu, nn.Linear(8, 3))
        with convcore.no_grad():
            self.conv.bias[1] = -100

    def forward(self, x):
        return self.body(F.relu(self.conv(x)).flatten(1))


@pytest.fixture(autouse=True)
def _nothing_stays():
    backward = vars(convcore.Tensor)["backward"]
    yield
    assert vars(convcore.Tensor)["backward"] is backward
    assert not _hooks._global_forward_pre_hooks and not optimizers._global_post_hooks


def train(net, optimizer, steps, losses=None):
    x, y = convcore.randn(5, 1, 4, 4), convcore.tensor([0, 1, 2, 0, 1])
    for _ in range(steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        if losses is not None:
            losses.append(loss.item())


def test_reports_are_the_loops_own_figures():
    convcore.manual_seed(0)
    net, reports, losses = Net(), [], []
    optimizer = convcore.optim.SGD(net.parameters(), lr=0.01)
    with inspection.watch(0, show=reports.append) as seen:
        train(net, optimizer, 6, losses)
    assert seen.steps == 6 and [one.step for one in reports] == [1, 3, 5, 6]
    shown = [losses[0], losses[2], losses[4], losses[5]]
    assert [one.loss for one in reports] == pytest.approx(shown)
    assert list(reports[-1].layers) == ["conv", "relu", "relu:2", "body.0", "body.2"]
    assert not any(module._forward_hooks for module in net.modules())


def test_the_last_step_is_shown_however_seldom_steps_are_looked_at():
    net, reports = Net(), []
    optimizer = convcore.optim.SGD(net.parameters(), lr=0.01)
    with inspection.watch(3600, show=reports.append):
        train(net, optimizer, 4)
    assert [one.step for one in reports] == [1, 4]
    assert reports[1].layers["body.0"].gradient > 0
    with inspection.watch(3600, show=reports.append):
        pass
    assert len(reports) == 2


def test_norms_are_those_of_the_gradients():
    net = Net()
    optimizer = convcore.optim.SGD(net.parameters(), lr=0.0)
    with inspection.watch(0, show=lambda report: None) as seen:
        train(net, optimizer, 1)
        for name in ("conv", "body.0", "body.2"):
            grads = [one.grad for one in net.get_submodule(name).parameters()]
            norm = math.sqrt(sum(float(one.double().square().sum()) for one in grads))
            assert seen.last.layers[name].gradient == pytest.approx(norm)
        whole = float(nn.utils.get_total_norm([one.grad for one in net.parameters()]))
        assert seen.last.total.gradient == pytest.approx(whole)


def test_a_lone_layers_parameters_have_the_name_of_its_class():
    net, reports = nn.Linear(2, 1), []
    optimizer = convcore.optim.SGD(net.parameters(), lr=0.01)
    with inspection.watch(0, show=reports.append):
        net(convcore.ones(3, 2)).sum().backward()
        optimizer.step()
    assert list(reports[-1].layers) == ["Linear"]


def test_dead_units_are_counted_over_all_calls_of_a_step():
    net = nn.Sequential(nn.Linear(1, 3), nn.ReLU())
    with convcore.no_grad():
        net[0].weight.copy_(convcore.tensor([[1.0], [-1.0], [0.0]]))
        net[0].bias.copy_(convcore.tensor([0.0, 0.0, -1.0]))
    optimizer = convcore.optim.SGD(net.parameters(), lr=0.0)
    found = []
    with inspection.watch(0, show=found.append):
        for inputs in ([1.0], [], [1.0], [], [1.0, -1.0]):
            for value in inputs:
                net(convcore.full((2, 1), value)).sum().backward()
            optimizer.step()
    counted = [(one.total.dead, one.total.units) for one in found]
    assert counted == [(0, 0), (2, 3), (1, 3)]


def test_a_net_is_known_by_the_optimizers_parameters():
    teacher, net, reports = models.lenet(), Net(), []
    optimizer = convcore.optim.SGD(net.parameters(), lr=0.01)
    with inspection.watch(0, show=reports.append):
        for _ in range(3):
            with convcore.no_grad():
                teacher(convcore.zeros(1, 1, 28, 28))
            train(net, optimizer, 1)
    assert "body.0" in reports[-1].layers and "relu" in reports[-1].layers


def test_the_function_relu_is_seen_and_other_threads_are_not():
    net, reports = Net(), []
    optimizer = convcore.optim.SGD(net.parameters(), lr=0.01)
    with inspection.watch(0, show=reports.append) as seen:
        other = threading.Thread(target=train, args=(net, optimizer, 3))
        other.start()
        other.join()
        assert not seen.steps
        train(net, optimizer, 3)
    dead = {name: (one.dead, one.units) for name, one in reports[-1].layers.items() if one.units}
    assert any(one[1] == 4 and one[0] >= 1 for one in dead.values()) and len(dead) == 2


def test_nothing_stays_after_an_error_and_a_block_opens_once():
    net = Net()
    optimizer = convcore.optim.SGD(net.parameters(), lr=0.01)
    block = inspection.watch(0, show=lambda report: None)
    with pytest.raises(ZeroDivisionError), block:
        train(net, optimizer, 2)  # the third step would be looked at
        with pytest.raises(RuntimeError, match="open already"), block:
            pass
        _ = 1 / 0
    assert not any(module._forward_hooks for module in net.modules())
    assert not overrides._state.watchers
    for every in (-1, float("nan"), "1", True):
        with pytest.raises(ValueError, match="every must be seconds"):
            inspection.watch(every)
    with pytest.raises(ValueError, match=r"got Linear$"):
        inspection.watch(nn.Linear(1, 1))


def test_lines_say_what_is_not_finite(capsys):
    report = Report(3, 1.0, math.nan, {"a": Layer(0.5), "b": Layer(2.0, 1, 4)})
    with views.Lines() as lines:
        lines.show(report)
    line = capsys.readouterr().err
    assert line.startswith("step 3  loss nan  gradient norm 2.062  largest 2 in b  least 0.5 in a")
    assert "dead units 1 of 4" in line and "find_nan" in line and line.count("\n") == 1
    assert "find_nan" not in views.line_of(Report(3, 1.0, None, {}))


def test_rows_are_joined_until_they_fit():
    layers = {f"layer{k}.{j}.conv": Layer(3.0 + j, j, 2) for k in range(3) for j in range(2)}
    report = Report(1, 1.0, 0.5, layers)
    assert report.in_rows(6) == layers
    assert report.in_rows(3) == {f"layer{k}": Layer(5.0, 1, 4) for k in range(3)}
    assert list(report.in_rows(1)) == ["(all layers)"]
    assert Report(1, 1.0, None).in_rows(5) == {} and Report(1, 1.0, None).extremes() is None


def test_the_largest_gradient_is_the_one_that_is_no_number():
    for bad in (math.nan, math.inf):
        layers = {"0": Layer(0.0), "1": Layer(2.0), "2": Layer(bad), "3": Layer(5.0)}
        assert Report(1, 1.0, None, layers).extremes() == ("0", "2")


def test_the_table_fits_a_terminal():
    console = pytest.importorskip("rich.console")
    layers = {f"block{k}.conv": Layer(10.0**-k, k, 64) for k in range(5)}
    layers["block5"] = Layer(math.inf)
    report = Report(7, 2.0, 0.25, layers)
    screen = console.Console(width=80, record=True, file=sys.stderr)
    screen.print(views.table_of(report, [3.0, 2.0, 0.25], 10))
    lines = screen.export_text().split("\n")
    assert max(map(len, lines)) <= 80 and "step 7  3.5 a second  loss 0.25  █▅▁" in lines[0]
    bars = [line.count("█") for line in lines if "block" in line]
    assert bars[0] == max(bars) and bars[:5] == sorted(bars[:5], reverse=True) and not bars[5]


def test_hooks_are_gone_whatever_the_last_report_does():
    net = Net()
    optimizer = convcore.optim.SGD(net.parameters(), lr=0.01)

    def show(report):
        if report.step > 1:
            raise ArithmeticError("no")

    with pytest.raises(ArithmeticError), inspection.watch(3600, show=show):
        train(net, optimizer, 3)
