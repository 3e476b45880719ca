"""The switch: no_grad and its like.  They do the same in PyTorch: tests with `lib` run on both."""

import contextlib
import re
import threading

import pytest

import convcore


def test_recording_is_on_at_first(lib):
    assert lib.is_grad_enabled()
    assert not lib.is_inference_mode_enabled()


def test_no_grad_records_nothing(lib):
    x = lib.ones(1, requires_grad=True)
    with lib.no_grad():
        assert not lib.is_grad_enabled()
        y = x * 2
    assert lib.is_grad_enabled()
    assert not y.requires_grad
    assert y.is_leaf
    assert (x * 2).requires_grad


def test_leaves_made_inside_no_grad_may_require_grad(lib):
    with lib.no_grad():
        x = lib.ones(1, requires_grad=True)
    assert x.requires_grad
    (x * 2).backward()
    assert x.grad.tolist() == [2.0]


def test_contexts_nest(lib):
    seen = []
    with lib.no_grad():
        seen.append(lib.is_grad_enabled())
        with lib.enable_grad():
            seen.append(lib.is_grad_enabled())
            with lib.no_grad():
                seen.append(lib.is_grad_enabled())
            seen.append(lib.is_grad_enabled())
        seen.append(lib.is_grad_enabled())
    assert seen == [False, True, False, True, False]
    assert lib.is_grad_enabled()


def test_one_context_may_be_entered_again(lib):
    context = lib.no_grad()
    for _ in range(2):
        with context:
            assert not lib.is_grad_enabled()
        assert lib.is_grad_enabled()


@pytest.mark.parametrize("name", ["no_grad", "enable_grad", "inference_mode"])
def test_context_ends_with_an_exception(lib, name):
    with contextlib.suppress(KeyError), getattr(lib, name)():
        raise KeyError
    assert lib.is_grad_enabled()
    assert not lib.is_inference_mode_enabled()


def test_enable_grad_records_again(lib):
    x = lib.ones(1, requires_grad=True)
    with lib.no_grad(), lib.enable_grad():
        y = x * 2
    assert y.requires_grad


@pytest.mark.parametrize("parentheses", [False, True])
@pytest.mark.parametrize("name, enabled", [("no_grad", False), ("enable_grad", True)])
def test_contexts_decorate_functions(lib, name, enabled, parentheses):
    decorator = getattr(lib, name)
    decorator = decorator() if parentheses else decorator

    @decorator
    def function(a, *, b):
        """Documented."""
        return a + b, lib.is_grad_enabled()

    with lib.set_grad_enabled(not enabled):
        assert function(1, b=2) == (3, enabled)
        assert lib.is_grad_enabled() is not enabled
    assert (function.__name__, function.__doc__) == ("function", "Documented.")


def test_decorated_function_may_recurse_and_raise(lib):
    @lib.no_grad()
    def down(n):
        assert not lib.is_grad_enabled()
        if n == 0:
            raise KeyError
        down(n - 1)

    with pytest.raises(KeyError):
        down(3)
    assert lib.is_grad_enabled()


def test_decorated_method_keeps_its_object(lib):
    class Counter:
        n = 3

        @lib.no_grad()
        def get(self):
            return self.n, lib.is_grad_enabled()

    assert Counter().get() == (3, False)


def test_decorated_generator_has_the_mode_and_its_caller_does_not(lib):
    @lib.no_grad()
    def numbers():
        log.append(lib.is_grad_enabled())
        received = yield 1
        log.append((lib.is_grad_enabled(), received))
        try:
            yield 2
        except KeyError:
            log.append(("caught", lib.is_grad_enabled()))
        yield 3
        return "end"

    log = []
    generator = numbers()
    assert next(generator) == 1
    assert lib.is_grad_enabled()
    assert generator.send("sent") == 2
    assert lib.is_grad_enabled()
    assert generator.throw(KeyError()) == 3
    assert lib.is_grad_enabled()
    with pytest.raises(StopIteration) as end:
        next(generator)
    assert end.value.value == "end"
    assert log == [False, (False, "sent"), ("caught", False)]


def test_decorated_generator_is_closed_in_its_mode(lib):
    @lib.no_grad()
    def numbers():
        try:
            yield 1
        finally:
            log.append(lib.is_grad_enabled())

    log = []
    generator = numbers()
    next(generator)
    generator.close()
    assert log == [False]
    assert lib.is_grad_enabled()


def test_decorated_generator_sees_the_mode_that_its_caller_changed(lib):
    @lib.enable_grad()
    def numbers():
        for _ in range(2):
            yield lib.is_grad_enabled()

    generator = numbers()
    assert next(generator)
    with lib.no_grad():
        assert next(generator)
        assert not lib.is_grad_enabled()


def test_set_grad_enabled_is_a_function(lib):
    try:
        lib.set_grad_enabled(False)
        assert not lib.is_grad_enabled()
        lib.set_grad_enabled(True)
        assert lib.is_grad_enabled()
    finally:
        lib.set_grad_enabled(True)


@pytest.mark.parametrize("value", [False, True])
def test_set_grad_enabled_is_a_context(lib, value):
    with lib.set_grad_enabled(not value):
        with lib.set_grad_enabled(value):
            assert lib.is_grad_enabled() is value
        assert lib.is_grad_enabled() is not value
    assert lib.is_grad_enabled()


def test_a_decorated_function_puts_back_what_its_caller_had(lib):
    decorated = lib.set_grad_enabled(True)(lib.is_grad_enabled)
    with lib.no_grad():
        assert decorated() and not lib.is_grad_enabled()


def test_set_grad_enabled_is_a_decorator(lib):
    @lib.set_grad_enabled(False)
    def function():
        return lib.is_grad_enabled()

    assert lib.is_grad_enabled()
    assert function() is False
    assert lib.is_grad_enabled()


def test_inference_mode_records_nothing(lib):
    x = lib.ones(1, requires_grad=True)
    with lib.inference_mode():
        assert lib.is_inference_mode_enabled()
        assert not lib.is_grad_enabled()
        assert not (x * 2).requires_grad
    assert not lib.is_inference_mode_enabled()
    assert lib.is_grad_enabled()


def test_inference_mode_can_be_off(lib):
    with lib.inference_mode(), lib.inference_mode(False):
        assert not lib.is_inference_mode_enabled()
        assert lib.is_grad_enabled()


@pytest.mark.parametrize("parentheses", [False, True])
def test_inference_mode_is_a_decorator(lib, parentheses):
    decorator = lib.inference_mode() if parentheses else lib.inference_mode

    @decorator
    def function():
        return lib.is_inference_mode_enabled()

    assert function() is True
    assert not lib.is_inference_mode_enabled()


def test_each_thread_has_a_mode_of_its_own(lib):
    seen = []

    def other():
        seen.append(lib.is_grad_enabled())
        lib.set_grad_enabled(False)

    with lib.no_grad():
        worker = threading.Thread(target=other)
        worker.start()
        worker.join()
    assert seen == [True]
    assert lib.is_grad_enabled()


def test_modes_are_found_in_autograd_too(lib):
    for name in ("no_grad", "enable_grad", "set_grad_enabled", "inference_mode"):
        assert getattr(lib.autograd, name) is getattr(lib, name)


def test_backward_runs_in_its_thread_anyway(lib):
    switch, x, seen = lib.autograd.set_multithreading_enabled, lib.ones(1, requires_grad=True), []
    x.register_hook(lambda grad: seen.append(threading.get_ident()))
    with switch(False), switch(True):
        x.sum().backward()
        assert lib.autograd.is_multithreading_enabled()
    switch(False)(lambda: x.sum().backward())()
    switch(False)
    assert not lib.autograd.is_multithreading_enabled()
    switch(True)
    assert lib.autograd.is_multithreading_enabled()
    assert seen == [threading.get_ident()] * 2


# Inference tensors


def inference_tensor(lib):
    with lib.inference_mode():
        return lib.ones(2)


def test_tensors_made_in_inference_mode_say_so(lib):
    x = inference_tensor(lib)
    assert x.is_inference()
    assert lib.is_inference(x)
    assert x.view(2, 1).is_inference()
    assert not x.clone().is_inference()
    assert not lib.ones(2).is_inference()
    with lib.inference_mode(), lib.inference_mode(False):
        assert not lib.ones(2).is_inference()
    with lib.inference_mode():
        assert x.add_(1).tolist() == [2.0, 2.0]
    with pytest.raises(RuntimeError, match="Inference tensors do not track version counter"):
        x._version  # noqa: B018


def test_inference_tensors_are_not_changed_outside(lib):
    x = inference_tensor(lib)
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside"):
        x.add_(1)
    with pytest.raises(RuntimeError, match="Setting requires_grad=True on inference tensor"):
        x.requires_grad_(True)


def test_inference_tensors_are_not_saved_for_backward(lib):
    x = lib.ones(2, requires_grad=True)
    assert (x + inference_tensor(lib)).requires_grad  # which saves nothing
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        x * inference_tensor(lib)


VIEWS = {
    "view": lambda lib, x: x.view(-1),
    "index": lambda lib, x: x[0],
    "transpose": lambda lib, x: x.t(),
    "split": lambda lib, x: x.split(1)[1],
    "unbind": lambda lib, x: x.unbind()[0],
    "expand": lambda lib, x: x[:1].expand(3, 2),
    "chain": lambda lib, x: x.view(-1)[1:].unsqueeze(0),
    "as_strided": lambda lib, x: x.as_strided((2,), (1,)),
    "other dtype": lambda lib, x: lib.view_as_complex(x),
    "detach": lambda lib, x: x.detach(),
    "data": lambda lib, x: x.data,
    "clone": lambda lib, x: x.clone(),
}


@pytest.mark.parametrize("name", ["inference_mode", "no_grad"])
@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_views_made_without_recording_require_grad_as_their_base(torch, name, view):
    told = []
    for lib in (convcore, torch):
        leaf = lib.ones(2, 2, requires_grad=True)
        with getattr(lib, name)():
            own = lib.ones(2, 2, requires_grad=True)  # in inference_mode an inference tensor
            found = [view(lib, x) for x in (leaf, leaf * 1, lib.ones(2, 2))]
        for x in (leaf * 1, leaf.view(2, 2), own):
            with getattr(lib, name)():
                found.append(view(lib, x))
        told.append([(y.requires_grad, y.is_leaf, y.is_inference()) for y in found])
    assert told[0] == told[1]


def test_a_view_made_without_recording_gets_the_gradient_itself():
    x = convcore.ones(2, requires_grad=True)
    with convcore.inference_mode():
        y = x.view(2, 1)
        assert not x.view(convcore.int32).requires_grad
    (y * 3).sum().backward()
    assert x.grad is None and y.grad.tolist() == [[3], [3]]


def test_views_made_in_inference_mode_are_not_changed_outside(lib):
    x = lib.ones(3, requires_grad=True) * 1
    with lib.inference_mode():
        view = x.view(3, 1)
    assert not view.is_inference()
    with pytest.raises(RuntimeError, match="A view was created in inference mode and is being mod"):
        view.add_(1)
    x.mul_(2)
    with pytest.raises(RuntimeError, match="inference mode and its base or another view of its"):
        view.grad_fn  # noqa: B018


def test_inference_mode_is_a_threads_own(lib):
    seen = []
    with lib.inference_mode():
        thread = threading.Thread(target=lambda: seen.append(lib.ones(1).is_inference()))
        thread.start()
        thread.join()
    assert seen == [False]


def test_numpy_of_a_parameter_needs_no_detach_where_nothing_is_recorded(lib):
    x = lib.ones(2, requires_grad=True)
    with lib.no_grad():
        assert x.numpy().tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match="Can't call numpy"):
        x.numpy()


def test_decorated_classes_are_warned_of(lib):
    with pytest.warns(FutureWarning, match="Decorating classes is deprecated"):

        @lib.no_grad()
        class Recorder:
            def __init__(self):
                self.seen = lib.is_grad_enabled()

    assert not Recorder().seen


@pytest.mark.parametrize(
    ("context", "meant"),
    [
        (convcore.no_grad, "no_grad()"),
        (convcore.enable_grad, "enable_grad()"),
        (convcore.inference_mode, "inference_mode()"),
        (convcore.autocast, 'autocast("cpu")'),
        (convcore.cpu.amp.autocast, "autocast()"),
    ],
)
def test_forgotten_parentheses_are_named(context, meant):
    with (
        pytest.raises(TypeError, match=re.escape(f"needs parentheses: with {meant}, got the")),
        context,
    ):
        pass
    assert convcore.is_grad_enabled()
