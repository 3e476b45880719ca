"""Where NaN came from: what is raised and what is warned of, as in PyTorch."""

import warnings

import pytest

import convcore


def nan_behind_a_root(lib):
    """Return a number whose gradient has NaN: the root of 0 has slope infinity, times 0."""
    return (lib.zeros(2, requires_grad=True).sqrt() * 0).sum()


def caught(function):
    """Return the error's type and text, and the warnings' texts."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with pytest.raises((RuntimeError, ValueError)) as raised:
            function()
    return raised.type, str(raised.value), [str(one.message) for one in told]


def test_nan_in_a_backward_pass_is_an_error_with_the_line_that_made_it(torch):
    found = []
    for lib in (convcore, torch):
        with lib.autograd.set_detect_anomaly(True):
            y = nan_behind_a_root(lib)
            found.append(caught(y.backward))
    assert found[0][:2] == found[1][:2]
    for _, _, texts in found:
        assert len(texts) == 1
        assert texts[0].startswith(
            "Error detected in SqrtBackward0. Traceback of forward call that caused the error:\n"
        )
        assert "return (lib.zeros(2, requires_grad=True).sqrt() * 0).sum()" in texts[0]


def test_nan_is_found_too_if_the_forward_pass_was_not_watched(torch):
    found = []
    for lib in (convcore, torch):
        y = nan_behind_a_root(lib)
        with lib.autograd.set_detect_anomaly(True):
            found.append(caught(y.backward))
    assert found[0][:2] == found[1][:2]
    for _, _, texts in found:
        assert "Error detected in SqrtBackward0. No forward pass information" in texts[0]


def test_error_in_a_function_of_the_users_is_told_with_its_line():
    class Broken(convcore.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            raise ValueError("broken")

    with convcore.autograd.set_detect_anomaly(True):
        y = Broken.apply(convcore.ones(1, requires_grad=True))
        kind, text, told = caught(y.backward)
    assert (kind, text) == (ValueError, "broken")
    assert "Error detected in BrokenBackward" in told[0]
    assert "y = Broken.apply" in told[0]


def test_a_warning_made_an_error_does_not_hide_the_nodes_error(lib, capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with lib.autograd.detect_anomaly():
            warnings.simplefilter("error")
            x = lib.ones(2, requires_grad=True) + 1
            y = x**2
            x.add_(1)
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                y.sum().backward()
    assert "Error detected in PowBackward0" in capsys.readouterr().err


def test_nan_passes_where_it_is_not_looked_for(torch):
    for lib in (convcore, torch):
        nan_behind_a_root(lib).backward()
        with lib.autograd.set_detect_anomaly(True, check_nan=False):
            nan_behind_a_root(lib).backward()
        with lib.autograd.set_detect_anomaly(True), lib.autograd.set_detect_anomaly(False):
            nan_behind_a_root(lib).backward()


def test_context_warns_and_ends(torch):
    for lib in (convcore, torch):
        with pytest.warns(UserWarning, match="Anomaly Detection has been enabled"):
            context = lib.autograd.detect_anomaly()
        with context:
            y = nan_behind_a_root(lib)
            kind, text, _ = caught(y.backward)
        assert (kind, text[:25]) == (RuntimeError, "Function 'SqrtBackward0' ")
        nan_behind_a_root(lib).backward()


def test_switch_stays_where_it_is_no_context(torch):
    for lib in (convcore, torch):
        lib.autograd.set_detect_anomaly(True)
        try:
            assert caught(nan_behind_a_root(lib).backward)[0] is RuntimeError
        finally:
            lib.autograd.set_detect_anomaly(False)
        nan_behind_a_root(lib).backward()
