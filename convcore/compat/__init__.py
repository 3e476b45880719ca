"""PyTorch's programs with convcore in PyTorch's place: `as_torch` and ``convcore run``.

    door.py         the import hook: `torch.X` is convcore.X, under PyTorch's names
    children.py     processes that are spawned find `torch`, too
    hidden.py       methods by which programs would take a class for another
    errors.py       the error for what PyTorch has and convcore has not
    scope.py        what is out of scope, why, and what to use instead
    inert.py        stand-ins for names that programs touch and do not use
    names.py        PyTorch's public names (names.txt, made by tests/helpers/list_torch_names.py)
    table.py        each public name: here, different, missing, or out of scope
    torch/          modules that only PyTorch's programs ask for, under PyTorch's paths

No room below knows of this one: what PyTorch has and people use is in the rooms themselves.
"""

from convcore.compat.door import as_torch as as_torch
from convcore.compat.errors import MissingAttributeError as MissingAttributeError
from convcore.compat.errors import MissingModuleError as MissingModuleError
from convcore.compat.errors import NotInConvcoreError as NotInConvcoreError
