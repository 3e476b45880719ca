"""Each public function has source that can be read: its own signature, and the body that runs."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import textwrap
from pathlib import Path

import pytest

import convcore

PACKAGE = Path(convcore.__file__).parent
# Runs a user's program as Python itself does.
RUNS_PROGRAMS = "cli/programs/streams.py"
# Names that are another function's: aliases such as `absolute`, in-place forms such as `abs_`.
ALIASES = re.compile(
    r".*_|absolute|arc\w+|clip|concat(enate)?|divide|fix|ger|greater(_equal)?|less(_equal)?|moveaxis"
    r"|multiply|negative|not_equal|row_stack|subtract|swapdims|trapz|true_divide"
)


def calls_of(source: str, names: tuple[str, ...]) -> list[int]:
    """Return the lines on which a source calls one of some built-in functions."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names
    ]


def test_no_function_is_made_of_text():
    callers = {
        file.relative_to(PACKAGE).as_posix()
        for file in PACKAGE.rglob("*.py")
        if calls_of(file.read_text(encoding="utf-8"), ("exec", "eval"))
    }
    assert callers == {RUNS_PROGRAMS}


def test_a_call_of_exec_is_found():
    assert calls_of("f(1)\nx = exec('y')\nnet.eval()\n", ("exec", "eval")) == [2]


def functions_of(module: str) -> dict[str, object]:
    """Return the public functions of a module that are written in Python, by name."""
    found = importlib.import_module(module)
    named = {name: getattr(found, name) for name in getattr(found, "__all__", dir(found))}
    return {
        name: value
        for name, value in named.items()
        if inspect.isfunction(value) and not name.startswith("_")
    }


def fault_of(name: str, function: object) -> str | None:
    """Return how a function's source differs from the code that runs, or None if it does not."""
    code = inspect.unwrap(function).__code__
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError) as error:
        return f"no source: {error}"
    (definition,) = tree.body
    if not isinstance(definition, ast.FunctionDef):
        return f"its source is no def: {ast.unparse(definition)[:80]}"
    if definition.name not in (name, "function") and not ALIASES.fullmatch(name):
        return f"its source defines {definition.name}"
    a = definition.args
    written = [x.arg for x in (*a.posonlyargs, *a.args, a.vararg, *a.kwonlyargs, a.kwarg) if x]
    if written != list(inspect.signature(function).parameters):
        return f"its signature is {inspect.signature(function)}, written are {written}"
    if definition.name != code.co_name:
        return f"its code is that of {code.co_name}"
    body = definition.body[1:] if ast.get_docstring(definition) else definition.body
    if not body:
        return "it has no body"
    lines = {line for _, _, line in code.co_lines() if line}
    first = code.co_firstlineno - 1
    last = first + definition.end_lineno
    return None if first < max(lines) <= last else "its code is from other lines"


@pytest.mark.parametrize("module", ["convcore.nn.functional", "convcore", "convcore.engine"])
def test_public_functions_show_the_code_that_runs(module):
    functions = functions_of(module)
    assert len(functions) > 40
    faults = {name: fault_of(name, function) for name, function in functions.items()}
    assert {name: fault for name, fault in faults.items() if fault} == {}


def test_functions_of_one_to_three_axes_are_written_out():
    ranked = {n for n in functions_of("convcore.nn.functional") if re.search(r"[123]d", n)}
    assert {"conv1d", "conv2d", "conv_transpose3d"} <= ranked
    for module in ("convcore.nn.functional", "convcore.nn.grad", "convcore.engine"):
        for name, function in functions_of(module).items():
            if re.search(r"[123]d", name):
                assert f"def {name}(" in inspect.getsource(function)


def _empty() -> None:
    """Return nothing."""


def test_a_function_whose_source_is_another_is_found():
    assert fault_of("_empty", _empty) == "it has no body"
    assert fault_of("other", functions_of) == "its source defines functions_of"
    namespace: dict = {}
    exec("def made(x): return x", namespace)
    assert fault_of("made", namespace["made"]).startswith("no source")
    assert fault_of("square", lambda x: x * x).startswith("its source is no def")


def test_a_traceback_under_autocast_names_files_that_exist():
    with convcore.autocast("cpu"), pytest.raises(RuntimeError) as caught:
        convcore.conv2d(convcore.ones(1, 2, 4, 4), convcore.ones(3, 3, 2, 2))
    files = [str(entry.path) for entry in caught.traceback]
    assert any(file.endswith("_casts.py") for file in files)
    assert all(Path(file).exists() for file in files)
