"""Contexts put back what they set whenever Ctrl-C comes: their end runs nothing of Python's."""

import _thread
import signal
import types

import pytest

import convcore
from convcore.autograd import anomaly_mode, grad_mode
from convcore.autograd.graph import saved_tensors_hooks
from convcore.engine.runtime._restoring import Restoring


def state():
    mode, anomaly = grad_mode.mode, anomaly_mode.anomaly
    inferring = set(convcore._tensor.recording.inferring)
    return (
        mode.enabled,
        mode.inference,
        mode.saved_hooks,
        anomaly.enabled,
        anomaly.check_nan,
        inferring,
        convcore.get_default_device(),
    )


AT_THE_CALL = (convcore.set_grad_enabled, anomaly_mode.set_detect_anomaly)  # these set it then
MAKERS = {
    "no_grad": convcore.no_grad,
    "enable_grad": convcore.enable_grad,
    "inference_mode": convcore.inference_mode,
    "set_grad_enabled": lambda: convcore.set_grad_enabled(False),
    "saved_tensors_hooks": lambda: saved_tensors_hooks(lambda t: t, lambda t: t),
    "set_detect_anomaly": lambda: convcore.autograd.set_detect_anomaly(True, check_nan=False),
    "detect_anomaly": lambda: convcore.autograd.detect_anomaly(check_nan=False),
    "device": lambda: convcore.device("meta"),
}
pytestmark = pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")


@pytest.fixture(params=MAKERS.values(), ids=list(MAKERS))
def make(request):
    return request.param


@pytest.mark.parametrize(
    "around", [convcore.enable_grad, convcore.no_grad, convcore.inference_mode]
)
def test_what_was_before_is_put_back(make, around):
    with around():
        before = state()
        with make():
            pass
        assert state() == before
        with pytest.raises(KeyError), make(), make():
            raise KeyError
        assert state() == before


def test_a_context_may_be_entered_within_itself(make):
    before = state()
    context = make()
    if isinstance(context, AT_THE_CALL):
        context.__enter__()
        context.__exit__()
        assert state() == before
        return
    with context:
        inside = state()
        with context, convcore.enable_grad():
            pass
        assert state() == inside
    assert state() == before


def test_no_function_of_pythons_runs_at_the_end(make):
    before = state()
    context = make()
    assert type(context).__exit__ is Restoring.__exit__
    assert not isinstance(Restoring.__exit__, types.FunctionType)
    with context:
        calls = [function for function, _ in context._back()]
        kinds = types.BuiltinMethodType, types.MethodWrapperType
        assert calls and all(isinstance(call, kinds) for call in calls)
    assert state() == before


@pytest.fixture
def interrupts():
    """Have Ctrl-C raise KeyboardInterrupt; a shell ignores it in what it runs in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interrupts")
@pytest.mark.parametrize("late", [False, True])
def test_an_interrupt_while_the_mode_is_set_leaves_it_as_it_was(make, late):
    before = state()
    context = make()

    class Interrupted(type(context)):
        __slots__ = ()

        def _enter(self):
            if late:
                super()._enter()
            _thread.interrupt_main()
            len("")  # a call, after which Python looks for signals

    context.__class__ = Interrupted
    with pytest.raises(KeyboardInterrupt), context:
        pass
    assert state() == before


def test_a_device_set_within_a_devices_block_holds_until_its_end():
    with convcore.device("meta"):
        convcore.set_default_device(None)
        assert convcore.ones(1).device.type == "cpu"
    assert convcore.get_default_device() == convcore.device("cpu")


def test_the_end_without_a_beginning_is_an_error():
    with pytest.raises(RuntimeError, match="not entered"):
        convcore.no_grad().__exit__()
