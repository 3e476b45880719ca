"""PyTorch's errors are compared with a record, and what differs from it is told."""

from types import SimpleNamespace

import pytest
from torch_errors import Errors


@pytest.fixture
def record(request):
    made = Errors()
    made.by_test = {request.node.nodeid: [["ValueError", "first"], ["TypeError", "second"]]}
    return made


def library(version):
    return SimpleNamespace(__version__=version)


def never():
    raise AssertionError("PyTorch of another version was asked")


def test_another_version_is_not_asked(record):
    other = library("9.9.9+cpu")
    assert record.of(other, never) == ("ValueError", "first")
    assert record.of(other, never) == ("TypeError", "second")
    assert record.of(other, lambda: ("KeyError", "new")) == ("KeyError", "new")


def test_the_version_of_the_record_is_compared_with_it(record):
    here = library(f"{record.version}+cpu")
    assert record.of(here, lambda: ("ValueError", "first")) == ("ValueError", "first")
    with pytest.raises(AssertionError, match="--renew-errors"):
        record.of(here, lambda: ("TypeError", "changed"))


def test_renewed_errors_are_written_beside_those_that_did_not_run(
    record, request, tmp_path, monkeypatch
):
    monkeypatch.setattr("torch_errors.RECORD", tmp_path / "errors.json")
    record.by_test["tests/test_c.py::test_d"] = [["KeyError", "kept"]]
    record.renew()
    record.of(library("9.9.9"), lambda: ("ValueError", "new"))
    record.save()
    read = Errors()
    assert read.version == "9.9.9"
    assert read.by_test == {
        request.node.nodeid: [["ValueError", "new"]],
        "tests/test_c.py::test_d": [["KeyError", "kept"]],
    }
