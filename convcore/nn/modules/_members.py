"""Members of a module: registering, finding and listing its parameters, buffers and submodules.

They are stored in three dictionaries, not in the instance dictionary, so that each kind can be
listed in registration order. Attribute access goes through those dictionaries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from convcore._errors import hinted, hints
from convcore._tensor import Tensor
from convcore.nn.modules import _hooks
from convcore.nn.parameter import Buffer, Parameter


def typename(value: Any) -> str:
    """Return the name of a value's type, or of a class, as PyTorch's error messages spell it."""
    if isinstance(value, Tensor):
        return value.type()
    cls = value if isinstance(value, type) else type(value)
    return cls.__qualname__ if cls.__module__ == "builtins" else _full_name(cls)


def _full_name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _check_none(value: Any, kind: str, name: str, expected: str) -> None:
    """Raise if what is assigned to the name of a parameter, module or buffer is not None."""
    if value is not None:
        raise hinted(
            TypeError(
                f"cannot assign '{typename(value)}' as {kind} '{name}' "
                f"({expected} or None expected)"
            ),
            hints.parameter(value, name) if kind == "parameter" else "",
        )


def _too_early(what: str) -> AttributeError:
    error = AttributeError(f"cannot assign {what} before Module.__init__() call")
    return hinted(error, hints.NO_SUPER)


class Members:
    """The part of Module that registers, finds and lists its members."""

    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]

    # Registration

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Register ``param`` as a parameter of this module, under an attribute of the given name.

        Parameters
        ----------
        name : str
            A new name, without dots.
        param : Parameter or None
            None reserves the name; it is in neither `parameters()` nor `state_dict()`.

        Raises
        ------
        AttributeError
            `Module.__init__` has not been called yet.
        KeyError
            The name has a dot, is empty, or is already another attribute.
        TypeError
            The name is not a string, or ``param`` is neither a Parameter nor None.
        ValueError
            ``param`` was computed from other tensors.
        """
        if "_parameters" not in self.__dict__:
            raise _too_early("parameter")
        self._check_name("parameter", name, self._parameters)
        if param is not None:
            if not isinstance(param, Parameter):
                raise hinted(
                    TypeError(
                        f"cannot assign '{typename(param)}' object to parameter '{name}' "
                        "(torch.nn.Parameter or None required)"
                    ),
                    hints.of_pytorch(param) or "wrap it: nn.Parameter(tensor)",
                )
            if param.grad_fn is not None:
                raise ValueError(
                    f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must "
                    f"be created explicitly. To express '{name}' as a function of another Tensor, "
                    "compute the value in the forward() method."
                )
            hooks = _hooks._global_parameter_registration_hooks
            param = _hooks.registered(hooks, self, name, param)
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Register ``tensor`` as a buffer of this module: part of its state, but not trained.

        Parameters
        ----------
        name : str
            A new name, without dots.
        tensor : Tensor or None
            None reserves the name; it is in neither `buffers()` nor `state_dict()`.
        persistent : bool
            Whether the buffer is in `state_dict`.

        Raises
        ------
        AttributeError, KeyError, TypeError
            As for `register_parameter`, of a Tensor.
        """
        if "_buffers" not in self.__dict__:
            raise _too_early("buffer")
        self._check_name("buffer", name, self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise hinted(
                TypeError(
                    f"cannot assign '{typename(tensor)}' object to buffer '{name}' "
                    "(torch Tensor or None required)"
                ),
                hints.not_a_tensor(tensor),
            )
        hooks = _hooks._global_buffer_registration_hooks
        self._buffers[name] = _hooks.registered(hooks, self, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name: str, module: Any) -> None:
        """Register ``module`` as a child of this module, under an attribute of the given name.

        Raises
        ------
        KeyError, TypeError
            As for `register_parameter`, of a Module.
        """
        if module is not None and not isinstance(module, Members):
            raise hinted(
                TypeError(f"{typename(module)} is not a Module subclass"),
                hints.not_a_module(module),
            )
        self._check_name("module", name, self._modules)
        self._set_module(name, module)

    def register_module(self, name: str, module: Any) -> None:
        """Call `add_module`, of which this is another name."""
        self.add_module(name, module)

    def _check_name(self, kind: str, name: str, members: dict) -> None:
        """Raise unless a member of the given kind can be registered under this name."""
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {typename(name)}")
        if "." in name:
            got = f", got: {name}" if kind == "module" else ""
            raise KeyError(f'{kind} name can\'t contain "."{got}')
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if name not in members and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")

    def _set_module(self, name: str, module: Any) -> None:
        hooks = _hooks._global_module_registration_hooks
        self._modules[name] = _hooks.registered(hooks, self, name, module)

    # Attributes

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        try:
            if name in own["_parameters"]:
                return own["_parameters"][name]
            if name in own["_buffers"]:
                return own["_buffers"][name]
            if name in own["_modules"]:
                return own["_modules"][name]
        except KeyError:
            pass  # before __init__ there are no members
        raise hinted(
            AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'"),
            hints.METHODS.get(name, ""),
        )

    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        if isinstance(value, Parameter):
            if "_parameters" not in own:
                raise _too_early("parameters")
            self._forget(name, self._buffers, self._modules)
            self.register_parameter(name, value)
        elif name in own.get("_parameters", ()):
            _check_none(value, "parameter", name, "torch.nn.Parameter")
            self.register_parameter(name, None)
        elif isinstance(value, Members):
            if "_modules" not in own:
                raise _too_early("module")
            self._forget(name, self._parameters, self._buffers)
            self._set_module(name, value)
        elif name in own.get("_modules", ()):
            _check_none(value, "child module", name, "torch.nn.Module")
            self._set_module(name, None)
        elif isinstance(value, Buffer) or name in own.get("_buffers", ()):
            self._set_buffer(name, value)
        else:
            super().__setattr__(name, value)

    def _set_buffer(self, name: str, value: Any) -> None:
        """Register a buffer by assignment; one that existed stays persistent or not."""
        if not isinstance(value, Tensor):
            _check_none(value, "buffer", name, "torch.nn.Buffer, torch.Tensor")
        if isinstance(value, Buffer):
            persistent = value.persistent
        else:
            persistent = name not in self._non_persistent_buffers_set
        if persistent:  # a subclass may know of no other buffers
            self.register_buffer(name, value)
        else:
            self.register_buffer(name, value, False)

    def _forget(self, name: str, *members: dict) -> None:
        """Free a name that another kind of member is about to take."""
        for names in (self.__dict__, *members):
            names.pop(name, None)
        self._non_persistent_buffers_set.discard(name)

    def __delattr__(self, name: str) -> None:
        for members in (self._parameters, self._buffers, self._modules):
            if name in members:
                del members[name]
                self._non_persistent_buffers_set.discard(name)
                return
        super().__delattr__(name)

    def __dir__(self) -> list[str]:
        members = (*self._parameters, *self._modules, *self._buffers)
        names = (*dir(type(self)), *self.__dict__, *members)
        return sorted(name for name in names if not name[0].isdigit())

    # Finding a member by its path

    def get_submodule(self, target: str) -> Any:
        """Return the submodule at a dotted path; the empty path is this module.

        Raises
        ------
        AttributeError
            There is nothing at the path, or something that is not a Module.
        """
        module = self
        for name in target.split(".") if target else ():
            module = module._attribute(name)
            if not isinstance(module, Members):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return module

    def set_submodule(self, target: str, module: Any, strict: bool = False) -> None:
        """Replace or add the submodule at a dotted path; the parent must exist.

        Parameters
        ----------
        target : str
        module : Module
        strict : bool
            Whether a submodule must already be there.

        Raises
        ------
        AttributeError
            The parent is missing, or there is something at the path that is not a Module; if
            ``strict``, also if there is nothing.
        ValueError
            The path is empty, or ``module`` is not a Module.
        """
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Members):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict or hasattr(parent, name):
            parent.get_submodule(name)
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """Return the parameter at a dotted path.

        Raises
        ------
        AttributeError
            There is nothing at the path, or something that is not a Parameter.
        """
        path, _, name = target.rpartition(".")
        parameter = self.get_submodule(path)._attribute(name)
        if not isinstance(parameter, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return parameter

    def get_buffer(self, target: str) -> Tensor:
        """Return the buffer at a dotted path.

        Raises
        ------
        AttributeError
            There is nothing at the path, or something that is not a buffer.
        """
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        buffer = module._attribute(name)
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return buffer

    def _attribute(self, name: str) -> Any:
        if not hasattr(self, name):
            raise AttributeError(f"{self._get_name()} has no attribute `{name}`")
        return getattr(self, name)

    def _get_name(self) -> str:
        return type(self).__name__

    # Listing

    def named_modules(
        self, memo: set | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """Yield (path, module) for this module and its descendants, parents first.

        Parameters
        ----------
        memo : set of Module, optional
            Modules to skip; those that are yielded are added.
        prefix : str
            The path of this module.
        remove_duplicate : bool
            Whether a module that is reached twice is yielded once.
        """
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                path = f"{prefix}.{name}" if prefix else name
                yield from module.named_modules(memo, path, remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Any]:
        """Yield this module and its descendants, parents first; each once by default."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_children(self) -> Iterator[tuple[str, Any]]:
        """Yield (name, module) for the direct children, each once."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Any]:
        """Yield the direct children, each once."""
        for _, module in self.named_children():
            yield module

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Yield (path, parameter) for this module's parameters.

        Parameters
        ----------
        prefix : str
            The path of this module.
        recurse : bool
            Whether submodules' parameters are yielded too.
        remove_duplicate : bool
            Whether a parameter that is reached twice is yielded once.
        """
        yield from self._named_members(
            lambda module: module._parameters.items(), prefix, recurse, remove_duplicate
        )

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Yield this module's parameters, and if ``recurse`` its submodules'; each once."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Yield (path, buffer) for this module's buffers; arguments as for `named_parameters`."""
        yield from self._named_members(
            lambda module: module._buffers.items(), prefix, recurse, remove_duplicate
        )

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Yield this module's buffers, and if ``recurse`` its submodules'; each once."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def _named_members(
        self,
        get_members_fn: Callable,
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        """Yield (path, member) for the pairs of ``get_members_fn(module)`` of each module."""
        seen = set()
        modules = [(prefix, self)]
        if recurse:
            modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
        for path, module in modules:
            for name, member in get_members_fn(module):
                if member is None or member in seen:
                    continue
                if remove_duplicate:
                    seen.add(member)
                yield f"{path}.{name}" if path else name, member
