"""Unknown names: errors that say which one was meant, or why it is missing."""

from __future__ import annotations

import dis
import functools
import sys
from types import FrameType
from typing import NoReturn

from convcore._errors import hinted


def explain_names(room: str) -> None:
    """Have a module, and what is loaded of the modules in it, explain names that they lack.

    To be called at its end.  Type checkers, which find misspelt names, do not see it.
    """
    for path, module in list(sys.modules.items()):
        inside = path == room or path.startswith(f"{room}.")
        if inside and "._" not in path and not hasattr(module, "__getattr__"):
            module.__getattr__ = functools.partial(_refuse, path)  # type: ignore[method-assign]


def _refuse(module: str, name: str) -> NoReturn:
    raise missing_name(module, name)


def missing_name(module: str, name: str) -> AttributeError | ImportError:
    """Return the error of a name that a module lacks; PyTorch's name is explained.

    To be called by the module's `__getattr__`.
    """
    owner = sys.modules.get(module)
    text = f"module {module!r} has no attribute {name!r}"
    if name.startswith("_"):  # Python itself asks for names such as __path__
        return AttributeError(text, name=name, obj=owner)
    why, meant = _explained(module, name)
    question = f". Did you mean {meant!r}?" if meant else ""
    if _is_imported_from(module) and f"{module}.{name}" not in sys.modules:
        # Python would replace an AttributeError by an error of its own, without the hint.
        path = getattr(owner, "__file__", None)
        text = f"cannot import name {name!r} from {module!r} ({path}){question}"
        return hinted(ImportError(text, name=module, path=path), why)
    # Without the module, in which Python would look for the name again, and say it twice.
    obj = None if meant or why else owner
    return hinted(AttributeError(f"{text}{question}", name=name, obj=obj), why)


def refuse_module(path: str) -> None:
    """Raise the error of a module that is imported and was not found; PyTorch's is explained.

    To be called by a finder of modules.  Who only asks whether there is such a module, as
    `importlib.util.find_spec` does, is answered by no finder that there is none.
    """
    importing = sys._getframe(3).f_code.co_name == "_find_and_load_unlocked"
    module, _, name = path.rpartition(".")
    if not importing or module not in sys.modules or module.startswith("convcore.compat"):
        return
    why, meant = _explained(module, name)
    if why or meant:
        question = f". Did you mean {meant!r}?" if meant else ""
        raise hinted(ModuleNotFoundError(f"No module named {path!r}{question}", name=path), why)


def _explained(module: str, name: str) -> tuple[str, str]:
    """Return why convcore has no such name, and which was meant: one of them, or none."""
    from convcore._errors import missing  # whose tables are read when something is missing

    room = module.replace("convcore", "torch", 1)
    why = missing.explanation(room, name)
    meant = "" if why else missing.nearest_in(module, name)
    return why or ("" if meant else missing.out_of_scope(f"{room}.{name}")), meant


def _is_imported_from(module: str) -> bool:
    """Return whether the caller that asks for a name stands at ``from module import name``."""
    frame: FrameType | None = sys._getframe(1)
    while frame and frame.f_globals.get("__name__") in (__name__, module):
        frame = frame.f_back
    return frame is not None and frame.f_code.co_code[frame.f_lasti] == dis.opmap["IMPORT_FROM"]
