"""What is public says in its docstring what it does, and takes its arguments as PyTorch does."""

import importlib
import inspect
import types

import pytest

import convcore

ROOMS = (
    "convcore",
    "convcore.autograd",
    "convcore.autograd.functional",
    "convcore.autograd.graph",
    "convcore.cpu",
    "convcore.cuda",
    "convcore.futures",
    "convcore.multiprocessing",
    "convcore.distributions",
    "convcore.linalg",
    "convcore.nn",
    "convcore.nn.functional",
    "convcore.nn.grad",
    "convcore.nn.init",
    "convcore.nn.utils",
    "convcore.optim",
    "convcore.optim.lr_scheduler",
    "convcore.random",
    "convcore.serialization",
    "convcore.special",
    "convcore.utils.data",
    "convcore.utils.hooks",
)

# Words that a sentence about a function starts with when it is no request.
NO_REQUESTS = {"A", "An", "It", "The", "These", "This"}

# Arguments that PyTorch has and convcore has not, nowhere or at these functions.
EVERYWHERE = {"device", "dtype", "out"}
LEFT_OUT = {
    "convcore.autograd.gradcheck": {
        *("check_backward_ad", "check_batched_forward_grad", "check_batched_grad"),
        *("check_forward_ad", "masked"),
    },
    "convcore.autograd.gradgradcheck": {
        *("check_batched_grad", "check_fwd_over_rev", "check_rev_over_rev"),
        *("gen_non_contig_grad_outputs", "masked"),
    },
    "convcore.cuda.is_bf16_supported": {"including_emulation"},
    "convcore.from_dlpack": {"copy"},
    "convcore.nn.Hardtanh": {"max_value", "min_value"},
    "convcore.nn.functional.l1_loss": {"weight"},
}
# Keywords that convcore alone has.
OWN = {
    f"{room}.{name}": names
    for room in ("convcore", "convcore.serialization")
    for name, names in {"load": {"format"}, "save": {"format", "metadata"}}.items()
}
# Classes whose arguments PyTorch does not tell, and decorators, whose argument nobody names.
NOT_COMPARED = {
    *("Generator", "Size", "layout", "memory_format"),
    *("enable_grad", "no_grad", "unserializable_hook"),
}


def public(room):
    """Yield (name, value) of a room's own functions, classes and their methods."""
    module = importlib.import_module(room)
    for name in getattr(module, "__all__", None) or dir(module):
        value = getattr(module, name)
        own = getattr(value, "__module__", "").startswith("convcore")
        if own and not name.startswith("_") and (inspect.isclass(value) or is_function(value)):
            yield f"{room}.{name}", value
            if inspect.isclass(value):
                yield from ((f"{room}.{name}.{method}", found) for method, found in methods(value))


def is_function(value):
    return isinstance(value, types.FunctionType)


def methods(cls):
    """Yield (name, value) of a class's own public methods and properties."""
    for name, value in vars(cls).items():
        if not name.startswith("_") and (is_function(value) or isinstance(value, property)):
            yield name, value


def fault_of_docstring(value):
    """Return what is wrong with the first line of a docstring, or None."""
    first = (inspect.getdoc(value) or "").partition("\n")[0]
    if not first:
        return "no docstring"
    if not first.endswith((".", ":")):
        return f"no sentence: {first}"
    word = first.split()[0]
    if is_function(value) and (word in NO_REQUESTS or word.endswith("s") or not word[0].isupper()):
        return f"no request: {first}"
    return None


@pytest.mark.parametrize("room", ROOMS)
def test_docstring_of_everything_public_starts_with_a_sentence(room):
    faults = {name: fault_of_docstring(value) for name, value in public(room)}
    assert {name: fault for name, fault in faults.items() if fault} == {}


def names_of(function):
    """Return the names of a function's parameters; None where it takes just anything."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    kinds = {parameter.kind for parameter in parameters}
    if inspect.Parameter.VAR_POSITIONAL in kinds:
        return None
    return [parameter.name for parameter in parameters]


def counterpart(torch, name):
    """Return what PyTorch has under the name, or None."""
    found = torch
    for part in name.split(".")[1:]:
        found = getattr(found, part, None)
    return found


def names_without(names, left_out):
    return [name for name in names if name not in left_out]


@pytest.mark.parametrize("room", ROOMS)
def test_arguments_have_the_names_and_the_order_of_pytorch(torch, room):
    importlib.import_module(room.replace("convcore", "torch", 1))
    differing = {}
    for name, value in public(room):
        ours, theirs = names_of(value), names_of(counterpart(torch, name))
        if name.rpartition(".")[2] in NOT_COMPARED or ours is None or theirs is None:
            continue
        left_out = (EVERYWHERE | LEFT_OUT.get(name, set())) - set(ours)
        first = name.removeprefix(f"{room}.").count(".")  # a method's own tensor has any name
        ours = names_without(ours, OWN.get(name, ()))
        if ours[first:] != names_without(theirs[first:], left_out):
            differing[name] = (ours, theirs)
    assert differing == {}


def test_methods_of_tensors_are_pytorchs(torch):
    names = [name for name, _ in methods(convcore.Tensor)]
    assert [name for name in names if not hasattr(torch.Tensor, name)] == []
