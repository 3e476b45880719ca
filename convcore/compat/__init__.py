"""PyTorch's programs with convcore in PyTorch's place: `as_torch` and ``convcore run``.

    door.py         the import hook: `torch.X` is convcore.X, under PyTorch's names
    children.py     processes that are spawned find `torch`, too
    hidden.py       methods by which programs would take a class for another
    inert.py        stand-ins for names that programs touch and do not use
    table.py        each public name: here, different, missing, or out of scope
    torch/          modules that only PyTorch's programs ask for, under PyTorch's paths

The errors for what PyTorch has and convcore lacks, and the names that PyTorch has, are in _errors/.
No room below knows of this one: what PyTorch has and people use is in the rooms themselves.
"""

from convcore._errors.missing import MissingAttributeError as MissingAttributeError
from convcore._errors.missing import MissingModuleError as MissingModuleError
from convcore._errors.missing import NotInConvcoreError as NotInConvcoreError
from convcore.compat.door import as_torch as as_torch
