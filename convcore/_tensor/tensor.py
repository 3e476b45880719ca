"""Tensor: an ndarray with requires_grad, grad, grad_fn, a version counter and hooks.

The array holds the values, its strides are the memory format.  The operations are elsewhere:
those of the graph in autograd/, all others in functions/; functions/_bind.py attaches them to this
class as methods.
"""

from __future__ import annotations

import copy
import importlib
import math
import warnings
from collections.abc import Callable
from threading import get_ident
from typing import Any, SupportsIndex

import numpy as np

from convcore._errors import hinted, hints
from convcore._tensor import dtypes, recording
from convcore._tensor.device import device as _device
from convcore._tensor.dtype_names import from_legacy_name, legacy_name
from convcore._tensor.meta import MetaArray
from convcore._tensor.printing import tensor_str
from convcore._tensor.reads import reads
from convcore._tensor.recording import Unversioned, inferring
from convcore._tensor.size import Size, trusted
from convcore.engine.integers import as_dim
from convcore.engine.runtime import shared, storages
from convcore.engine.runtime.layout import is_channels_last

__all__ = [
    "Tensor",
    "channels_last",
    "channels_last_3d",
    "contiguous_format",
    "memory_format",
    "preserve_format",
]

_CPU, _META = _device("cpu"), _device("meta")
_new = object.__new__

_listeners: list[Callable[[type], None]] = []


def on_subclass(listener: Callable[[type], None]) -> None:
    """Have a function called with every new subclass of Tensor."""
    _listeners.append(listener)


class memory_format:
    """A memory format, the order of a tensor's axes in memory; one object each, as in PyTorch."""

    __slots__ = ("_name",)

    def __init__(self, name: str):
        self._name = name

    def __repr__(self) -> str:
        return f"torch.{self._name}"

    def __reduce__(self) -> str:
        return self._name


contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")


class Tensor:
    """An n-dimensional array on the CPU that can take part in a graph of gradients.

    Make one with `convcore.tensor`, `convcore.from_numpy` and the other creation functions;
    ``Tensor(2, 3)`` and ``Tensor([1, 2])`` are PyTorch's older constructor, of float32.

    Attributes that are not documented here may be set freely, as on any Python object.
    """

    __slots__ = (
        "__dict__",
        "__weakref__",
        "_array",  # the value: always an ndarray, also where it has no axes
        "_counter",  # [version]: in-place changes so far, shared with views and detach()
        "_grad",
        "_grad_fn",  # the node that produced the value; None for a leaf
        "_leaf",  # a leaf's hooks and its AccumulateGrad (autograd/node.py), or None
        "_output_nr",  # which of the node's outputs this is
        "_requires_grad",
        "_view",  # of a view, the reference to its base (autograd/views.py); else None
    )

    __array_priority__ = 1000  # ndarray * tensor asks the tensor

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for listener in _listeners:
            listener(cls)

    def __new__(cls, *args: Any, **kwargs: Any) -> Tensor:
        from convcore._tensor.creation.legacy import legacy_tensor

        return legacy_tensor(*args, **kwargs, kind=cls)

    # Shape, dtype, device, memory

    @property
    def shape(self) -> Size:
        """The sizes of the axes."""
        return trusted(self._array.shape)

    def size(self, dim: int | None = None) -> Size | int:
        """Return the sizes of the axes, or the size of axis ``dim``."""
        if dim is None:
            return trusted(self._array.shape)
        return self._array.shape[self._axis(dim)]

    def _axis(self, dim: int) -> int:
        """Return ``dim`` if there is such an axis, or raise PyTorch's error."""
        rank = self._array.ndim
        if dim.__class__ is not int:
            dim = as_dim(dim)
        if not -max(rank, 1) <= dim < max(rank, 1):
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-max(rank, 1)}, "
                f"{max(rank, 1) - 1}], but got {dim})"
            )
        if rank == 0:
            raise IndexError("dimension specified as 0 but tensor has no dimensions")
        return dim

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._array.ndim

    def dim(self) -> int:
        """Return the number of axes."""
        return self._array.ndim

    ndimension = dim

    def numel(self) -> int:
        """Return the number of elements."""
        return self._array.size

    nelement = numel

    @property
    def dtype(self) -> dtypes.dtype:
        """The dtype of the elements."""
        return dtypes.of(self._array.dtype)

    @property
    def itemsize(self) -> int:
        """The bytes of an element."""
        return self._array.itemsize

    def element_size(self) -> int:
        """Return the bytes of an element."""
        return self._array.itemsize

    @property
    def nbytes(self) -> int:
        """The bytes of all elements."""
        return self._array.nbytes

    @property
    def device(self) -> _device:
        """Where the tensor is: on the CPU, or on 'meta', where it has no values."""
        return _META if isinstance(self._array, MetaArray) else _CPU

    @property
    def is_cpu(self) -> bool:
        """Whether the tensor is on the CPU."""
        return not self.is_meta

    @property
    def is_meta(self) -> bool:
        """Whether the tensor is on the device 'meta': a shape and a dtype without values."""
        return isinstance(self._array, MetaArray)

    @property
    def is_cuda(self) -> bool:
        """False: tensors are on the CPU."""
        return False

    def get_device(self) -> int:
        """Return -1, PyTorch's number of the CPU."""
        return -1

    @property
    def is_sparse(self) -> bool:
        """False: every tensor is dense."""
        return False

    def is_floating_point(self) -> bool:
        """Return whether the elements are real floating-point numbers."""
        return self._array.dtype.kind in dtypes.FLOATING

    def is_complex(self) -> bool:
        """Return whether the elements are complex numbers."""
        return self._array.dtype.kind == "c"

    def is_signed(self) -> bool:
        """Return whether the elements can be negative."""
        return self._array.dtype.kind in "fciV"

    def stride(self, dim: int | None = None) -> tuple[int, ...] | int:
        """Return the steps from one element to the next along each axis, or along ``dim``."""
        array = self._array
        steps = tuple(s // array.itemsize for s in array.strides)
        # Of NumPy's new arrays without elements, and of those on meta, no stride is known.
        if not any(steps) and (not array.size or isinstance(array, MetaArray)):
            sizes = [max(size, 1) for size in array.shape]
            steps = tuple(math.prod(sizes[axis + 1 :]) for axis in range(len(sizes)))
        return steps if dim is None else steps[self._axis(dim)]

    def storage_offset(self) -> int:
        """Return the number of elements before the first one in the memory of the base."""
        if self.is_meta:
            return 0
        base = self._array
        while isinstance(base.base, np.ndarray):
            base = base.base
        return (self.data_ptr() - base.__array_interface__["data"][0]) // self._array.itemsize

    def data_ptr(self) -> int:
        """Return the address of the first element; 0 on 'meta'."""
        return 0 if self.is_meta else self._array.__array_interface__["data"][0]

    def is_shared(self) -> bool:
        """Return whether the elements lie in memory that other processes may share."""
        return shared.is_shared(self._array)

    def share_memory_(self) -> Tensor:
        """Move the elements to memory that child processes share, and return the tensor.

        Forked processes have it from their parent, others by being given the tensor. Views made
        before stay where they are.
        """
        if self.is_meta:
            raise RuntimeError("_share_fd_: only available on CPU")
        if not shared.is_shared(self._array):
            self._array = shared.copy_to_shared(self._array)
        return self

    def is_contiguous(self, memory_format: memory_format = contiguous_format) -> bool:
        """Return whether the elements lie densely in the given memory format."""
        array = self._array
        if memory_format is contiguous_format:
            return array.flags.c_contiguous or isinstance(array, MetaArray)
        rank = 5 if memory_format is channels_last_3d else 4
        return array.ndim == rank and np.moveaxis(array, 1, -1).flags.c_contiguous

    def _suggested_format(self) -> memory_format:
        """Return the memory format that results computed from this tensor get."""
        if is_channels_last(self._array.shape, self._array.strides):
            return channels_last if self._array.ndim == 4 else channels_last_3d
        return contiguous_format

    # The graph

    @property
    def requires_grad(self) -> bool:
        """Whether operations on this tensor are recorded."""
        view = self._view
        if view is not None and view.stale():
            view.refresh(self)
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if value is not True and value is not False:
            raise RuntimeError(f"requires_grad must be a bool, got {value!r:.99}")
        if not self.is_leaf:
            hint = (
                ""
                if value
                else " If you want to use a computed variable in a subgraph that doesn't require "
                "differentiation use var_no_grad = var.detach()."
            )
            raise RuntimeError(f"you can only change requires_grad flags of leaf variables.{hint}")
        if value and self.dtype.numpy.kind not in dtypes.INEXACT:
            raise RuntimeError(
                "only Tensors of floating point and complex dtype can require gradients"
            )
        if value and type(self._counter) is Unversioned and not recording.mode.inference:
            raise RuntimeError(
                "Setting requires_grad=True on inference tensor outside InferenceMode is not "
                "allowed."
            )
        self._requires_grad = value

    @property
    def grad_fn(self) -> Any:
        """The graph node that produced this tensor; None for a leaf."""
        view = self._view
        if view is not None and view.stale():
            view.refresh(self)
        node = self._grad_fn
        if node is not None:
            node.note_output(self)
        return node

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded operation produced this tensor."""
        return not self.requires_grad or self._grad_fn is None

    @property
    def output_nr(self) -> int:
        """The number of this tensor among the outputs of `grad_fn`."""
        return self._output_nr

    @property
    def grad(self) -> Tensor | Any:  # None without one; Any, for programs know when there is one
        """The gradient that backward passes have accumulated."""
        if self._grad is None and not self.is_leaf and not self.retains_grad:
            warnings.warn(
                "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its "
                ".grad attribute won't be populated during autograd.backward(). If you indeed want "
                "the .grad field to be populated for a non-leaf Tensor, use .retain_grad() on the "
                "non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure you "
                "access the leaf Tensor instead.",
                stacklevel=2,
            )
        return self._grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None:
            if not isinstance(value, Tensor):
                raise TypeError(
                    "assigned grad expected to be a Tensor or None but got grad of type "
                    f"{type(value).__name__}"
                )
            if value is self:
                raise RuntimeError("can't assign Variable as its own grad")
            if value._array.dtype != self._array.dtype:
                raise RuntimeError(
                    f"attempting to assign a gradient with dtype '{value.dtype}' to a tensor with "
                    f"dtype '{self.dtype}'. Please ensure that the gradient and the tensor have "
                    "the same dtype"
                )
            if value._array.shape != self._array.shape:
                raise RuntimeError(
                    f"attempting to assign a gradient of size '{list(value.shape)}' to a tensor of "
                    f"size '{list(self.shape)}'. Please ensure that the gradient and the tensor "
                    "are the same size"
                )
        self._grad = value

    @grad.deleter
    def grad(self) -> None:
        self._grad = None

    @property
    def retains_grad(self) -> bool:
        """Whether backward stores the gradient of this non-leaf tensor, after `retain_grad`."""
        return self._grad_fn is not None and self._grad_fn.retains(self)

    @property
    def _version(self) -> int:
        """The version: in-place changes so far of the memory, through this tensor or its views."""
        if type(self._counter) is Unversioned:
            raise RuntimeError("Inference tensors do not track version counter.")
        return self._counter[0]

    def is_inference(self) -> bool:
        """Return whether the tensor was made inside `inference_mode`."""
        return type(self._counter) is Unversioned

    @property
    def _base(self) -> Tensor | None:
        """The tensor that this one is a view of, or None."""
        return None if self._view is None else self._view.base

    def _is_view(self) -> bool:
        return self._view is not None

    @property
    def data(self) -> Tensor:
        """The same memory outside the graph; backward does not detect changes made through it."""
        tensor = wrap(self._array)
        # Not is_inference(), which is a call that modes see.
        if type(tensor._counter) is Unversioned and type(self._counter) is not Unversioned:
            tensor._counter = [0]
        return tensor

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
        differentiable = value._array.dtype.kind in dtypes.INEXACT
        if self._requires_grad and not differentiable:
            raise RuntimeError(
                "data set to a tensor that requires gradients must be floating "
                "point or complex dtype"
            )
        self._array = value._array

    @data.deleter
    def data(self) -> None:
        raise RuntimeError("data cannot be deleted: a tensor has a value")

    def detach(self) -> Tensor:
        """Return the same memory outside the graph; backward detects in-place changes of either."""
        tensor = wrap(self._array)
        tensor._counter = self._counter
        return tensor

    # To Python and NumPy

    def item(self) -> Any:
        """Return the one element as a Python number."""
        if self._array.size != 1:
            raise RuntimeError(
                f"a Tensor with {self._array.size} elements cannot be converted to Scalar"
            )
        return self._element()

    def _element(self) -> Any:
        """Return the element of a tensor that has one."""
        reads.count += 1
        return self._array.item()

    def tolist(self) -> Any:
        """Return the elements as nested lists, or the element of a 0-d tensor."""
        reads.count += 1
        return self._array.tolist()

    def numpy(self, *, force: bool = False) -> np.ndarray:
        """Return the same memory as an ndarray.

        Raises
        ------
        RuntimeError
            The tensor requires grad, operations are recorded, and ``force`` is false.
        TypeError
            It is of bfloat16, which NumPy has not, or has no memory, on the meta device.
        """
        if not force and self.requires_grad and recording.mode.enabled:
            raise RuntimeError(
                "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() "
                "instead."
            )
        if self.is_meta:
            raise TypeError(
                "can't convert meta device type tensor to numpy. Use Tensor.cpu() to copy the "
                "tensor to host memory first."
            )
        if self._array.dtype.kind == "V":
            raise TypeError("Got unsupported ScalarType BFloat16")
        reads.count += 1
        return self._array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        array = self.numpy()
        if copy:
            return np.array(array, dtype=dtype)
        if copy is False:
            return np.asarray(array, dtype=dtype, copy=False)
        return array if dtype is None else array.astype(dtype, copy=False)

    def __array_wrap__(
        self, array: np.ndarray, context: Any = None, return_scalar: bool = False
    ) -> Tensor:
        """Return the result of a NumPy function as a tensor; bools as uint8."""
        return wrap(array.astype(np.uint8) if array.dtype == bool else np.asarray(array))

    def __dlpack__(self, **kwargs: Any) -> Any:
        if self.requires_grad:
            raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
        reads.count += 1
        return self._array.__dlpack__(**kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()

    def __bool__(self) -> bool:
        if self._array.size == 1:
            return bool(self._element())
        if self._array.size == 0:
            raise RuntimeError("Boolean value of Tensor with no values is ambiguous")
        text = "Boolean value of Tensor with more than one value is ambiguous"
        raise hinted(RuntimeError(text), hints.AMBIGUOUS)

    def __int__(self) -> int:
        return int(self._real_scalar())

    def __float__(self) -> float:
        return float(self._real_scalar())

    def _scalar(self) -> Any:
        if self._array.size != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        return self._element()

    def _real_scalar(self) -> Any:
        value = self._scalar()
        if isinstance(value, complex):
            if value.imag != 0:
                raise RuntimeError("value cannot be converted to type double without overflow")
            return value.real
        return value

    def __complex__(self) -> complex:
        return complex(self._scalar())

    def __index__(self) -> int:
        if self._array.size != 1 or self._array.dtype.kind not in "iub":
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self._element())

    def __len__(self) -> int:
        if self._array.ndim == 0:
            raise TypeError("len() of a 0-d tensor")
        return len(self._array)

    def __contains__(self, value: Any) -> bool:
        if isinstance(value, Tensor):
            value = value._array
        elif not isinstance(value, (bool, int, float, complex, np.generic)):
            raise RuntimeError(
                "Tensor.__contains__ only supports Tensor or scalar, but you passed in a "
                f"{type(value)}."
            )
        reads.count += 1
        return bool((self._array == value).any())

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        reads.count += 1
        return tensor_str(self)

    def _repr_html_(self) -> str:
        """Return what notebooks show: an image if the tensor looks like one."""
        from convcore._tensor.html import tensor_html

        return tensor_html(self)

    def __format__(self, spec: str) -> str:
        if self._array.ndim == 0 and type(self) is Tensor and not self.is_meta:
            reads.count += 1
            return format(self._array.item(), spec)
        return object.__format__(self, spec)

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """Return PyTorch's older name of the type, or this tensor as another ``dtype``.

        Examples
        --------
        >>> import convcore
        >>> convcore.ones(2).type()
        'torch.FloatTensor'
        >>> convcore.ones(2).type(convcore.int64)
        tensor([1, 1])
        """
        if dtype is None:
            name = legacy_name(self._array.dtype)
            return name.replace("torch.", "torch.meta.") if self.is_meta else name
        dtype = None if dtype is Tensor else getattr(dtype, "dtype", dtype)  # of LongTensor ...
        return self.to(dtypes.as_numpy(from_legacy_name(dtype)))

    # Copies

    def __deepcopy__(self, memo: dict) -> Tensor:
        if id(self) in memo:
            return memo[id(self)]
        if not self.is_leaf:
            unsupported = RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
                "protocol at the moment."
            )
            raise hinted(unsupported, hints.COMPUTED_COPY)
        tensor = wrap(storages.copied(self._array, memo), type(self))
        memo[id(self)] = tensor
        tensor._requires_grad = self._requires_grad
        if self._grad is not None:
            tensor._grad = copy.deepcopy(self._grad, memo)
        if self.__dict__:
            tensor.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return tensor

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple:
        for hook in self._leaf.hooks.values() if self._leaf is not None else ():
            if not getattr(hook, "__torch_unserializable__", False):
                warnings.warn(
                    f"backward hook {hook!r} on tensor will not be serialized.  If this is "
                    "expected, you can decorate the function with "
                    "@torch.utils.hooks.unserializable_hook to suppress this warning",
                    stacklevel=2,
                )
        array: Any = self._array if self.is_meta else shared.Handle(self._array)
        return _rebuild, (type(self), array, self.requires_grad, self.__dict__)


def wrap(array: np.ndarray, cls: type = Tensor) -> Tensor:
    """Return a new leaf tensor around an ndarray, sharing its memory."""
    tensor = _new(cls)
    tensor._array = array
    tensor._counter = Unversioned([0]) if inferring and get_ident() in inferring else [0]
    tensor._grad = tensor._grad_fn = tensor._leaf = tensor._view = None
    tensor._output_nr = 0
    tensor._requires_grad = False
    return tensor


def complete() -> None:
    """Import the functions, which become methods of Tensor: nobody may have done so yet."""
    importlib.import_module("convcore.functions")


def _rebuild(cls: type, array: Any, requires_grad: bool, attributes: dict) -> Tensor:
    """Restore a pickled tensor, or make what copy.copy does, which passes the handle itself."""
    complete()  # in a process that has only loaded a pickle, nobody else would
    tensor = wrap(array.array if isinstance(array, shared.Handle) else array, cls)
    tensor._requires_grad = requires_grad
    tensor.__dict__.update(attributes)
    return tensor
