"""A net that is called within its own call, by a hook of its own: names stay those of the call."""

import pytest

import convcore
from convcore import inspection, models
from convcore.inspection.reporting._calls import calls_of


class Twice:
    """Calls a net once more, from a hook on one of its layers."""

    def __init__(self, net, layer):
        self.net, self.answers, self.busy = net, [], False
        self.x = convcore.full((1, 3, 16, 16), 0.25)
        self.handle = layer.register_forward_hook(self.again)

    def again(self, module, args, output):
        if not self.busy:
            self.busy = True
            try:
                self.answers.append(self.net(self.x))
            finally:
                self.busy = False


@pytest.fixture
def net():
    convcore.manual_seed(0)
    return models.resnet8().eval()


def image():
    convcore.manual_seed(1)
    return convcore.rand(1, 3, 16, 16)


@pytest.mark.parametrize("of", ["output", "grad"])
@pytest.mark.parametrize("layer", ["conv1", "layer1.0", "layer1.0.relu", ""])
def test_a_call_in_a_hook_changes_no_captured_value(net, layer, of):
    def values():
        with inspection.capture(net, of=of) as found:
            net(image()).sum().backward()
        kept = found.output if of == "output" else found.grad
        return found.passes, {name: kept[name].clone() for name in kept}

    _, expected = values()
    twice = Twice(net, net.get_submodule(layer))
    passes, found = values()
    assert passes == 1 and twice.answers
    assert list(found) == list(expected)
    assert all(convcore.equal(found[name], expected[name]) for name in expected)


def test_fused_layers_of_a_call_in_a_hook_have_no_names(net):
    with convcore.no_grad():
        with inspection.capture(net) as expected:
            net(image())
        Twice(net, net.layer2)
        with inspection.capture(net) as found:
            net(image())
    assert list(found.output) == list(expected.output)
    assert all(convcore.equal(found[name], expected[name]) for name in found.output)


def test_a_call_after_an_interrupted_one_is_a_call_of_its_own(net):
    def interrupt(module, args, output):
        raise KeyboardInterrupt

    with inspection.capture(net) as found:
        with net.layer2.register_forward_hook(interrupt), pytest.raises(KeyboardInterrupt) as error:
            net(image())
        assert error.tb  # its frames live on
        net(image())
    assert found.passes == 2 and "fc" in found.output


def test_patches_are_of_the_call_and_not_of_one_in_a_hook(net):
    expected = net(convcore.full((1, 3, 16, 16), 0.25))
    twice = Twice(net, net.layer1)
    with inspection.patch(net, {"layer2": inspection.zero}):
        changed = net(image())
    assert convcore.equal(twice.answers[0], expected)
    twice.handle.remove()
    with inspection.patch(net, {"layer2": inspection.zero}):
        assert convcore.equal(changed, net(image()))


def test_find_nan_names_layers_after_a_call_in_a_hook(net):
    Twice(net, net.layer1)
    net.layer3[0].conv1.weight.data[0] = float("nan")
    with pytest.raises(inspection.NonFiniteError) as error, inspection.find_nan(net):
        net(image())
    assert error.value.module == "layer3.0.conv1"


def test_a_report_has_the_calls_of_the_call_alone(net):
    expected = [call.name for call in calls_of(net, lambda: net(image()))]
    Twice(net, net.layer1)
    assert [call.name for call in calls_of(net, lambda: net(image()))] == expected
