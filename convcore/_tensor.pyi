"""Tensor with every method it has once the package is loaded; see tests/helpers/make_stub.py."""

import builtins
from collections.abc import Callable, Iterator, Sequence
from typing import Any, SupportsIndex, overload

import numpy as np

from convcore._device import device as _device
from convcore._dtype import dtype as _dtype
from convcore._size import Size
from convcore.autograd.handle import RemovableHandle
from convcore.random.generator import Generator

class memory_format:
    _name: str
    def __init__(self, name: str) -> None: ...
    def __repr__(self) -> str: ...
    def __reduce__(self) -> str: ...

contiguous_format: memory_format
preserve_format: memory_format
channels_last: memory_format
channels_last_3d: memory_format

class Tensor:
    _array: np.ndarray
    _counter: list[builtins.int]
    _grad: Tensor | None
    _grad_fn: Any
    _leaf: Any
    _output_nr: builtins.int
    _requires_grad: builtins.bool
    _view: Any
    __array_priority__: builtins.int
    def __new__(cls, *args: Any, **kwargs: Any) -> Tensor: ...
    @property
    def shape(self) -> Size:
        """The sizes of the axes."""

    @overload
    def size(self, dim: None = None) -> Size: ...
    @overload
    def size(self, dim: builtins.int) -> builtins.int: ...
    def _axis(self, dim: builtins.int) -> builtins.int: ...
    @property
    def ndim(self) -> builtins.int:
        """The number of axes."""

    def dim(self) -> builtins.int:
        """Return the number of axes."""

    ndimension = dim
    def numel(self) -> builtins.int:
        """Return the number of elements."""

    nelement = numel
    @property
    def dtype(self) -> _dtype:
        """The dtype of the elements."""

    @property
    def itemsize(self) -> builtins.int:
        """The bytes of an element."""

    def element_size(self) -> builtins.int:
        """Return the bytes of an element."""

    @property
    def nbytes(self) -> builtins.int:
        """The bytes of all elements."""

    @property
    def device(self) -> _device:
        """Where the tensor is: on the CPU, or on 'meta', where it has no values."""

    @property
    def is_cpu(self) -> builtins.bool:
        """Whether the tensor is on the CPU."""

    @property
    def is_meta(self) -> builtins.bool:
        """Whether the tensor is on the device 'meta': a shape and a dtype without values."""

    @property
    def is_cuda(self) -> builtins.bool:
        """False: tensors are on the CPU."""

    def get_device(self) -> builtins.int:
        """Return -1, PyTorch's number of the CPU."""

    @property
    def is_sparse(self) -> builtins.bool:
        """False: every tensor is dense."""

    def is_floating_point(self) -> builtins.bool:
        """Return whether the elements are real floating-point numbers."""

    def is_complex(self) -> builtins.bool:
        """Return whether the elements are complex numbers."""

    def is_signed(self) -> builtins.bool:
        """Return whether the elements can be negative."""

    @overload
    def stride(self, dim: None = None) -> tuple[builtins.int, ...]: ...
    @overload
    def stride(self, dim: builtins.int) -> builtins.int: ...
    def storage_offset(self) -> builtins.int:
        """Return the number of elements before the first one in the memory of the base."""

    def data_ptr(self) -> builtins.int:
        """Return the address of the first element."""

    def is_contiguous(self, memory_format: memory_format = ...) -> builtins.bool:
        """Return whether the elements lie densely in the given memory format."""

    def _suggested_format(self) -> memory_format: ...
    @property
    def requires_grad(self) -> builtins.bool:
        """Whether operations on this tensor are recorded."""

    @requires_grad.setter
    def requires_grad(self, value: builtins.bool) -> None: ...
    @property
    def grad_fn(self) -> Any:
        """The graph node that produced this tensor; None for a leaf."""

    @property
    def is_leaf(self) -> builtins.bool:
        """Whether no recorded operation produced this tensor."""

    @property
    def output_nr(self) -> builtins.int:
        """The number of this tensor among the outputs of `grad_fn`."""

    @property
    def grad(self) -> Tensor | None:
        """The gradient that backward passes have accumulated."""

    @grad.setter
    def grad(self, value: Tensor | None) -> None: ...
    @grad.deleter
    def grad(self) -> None: ...
    @property
    def retains_grad(self) -> builtins.bool:
        """Whether backward stores the gradient of this non-leaf tensor, after `retain_grad`."""

    @property
    def _version(self) -> builtins.int: ...
    def is_inference(self) -> builtins.bool:
        """Return whether the tensor was made inside `inference_mode`."""

    @property
    def _base(self) -> Tensor | None: ...
    def _is_view(self) -> builtins.bool: ...
    @property
    def data(self) -> Tensor:
        """The same memory outside the graph; backward does not detect changes made through it."""

    @data.setter
    def data(self, value: Tensor) -> None: ...
    @data.deleter
    def data(self) -> None: ...
    def detach(self) -> Tensor:
        """Return the same memory outside the graph; backward detects in-place changes of either."""

    def item(self) -> Any:
        """Return the one element as a Python number."""

    def tolist(self) -> Any:
        """Return the elements as nested lists, or the element of a 0-d tensor."""

    def numpy(self, *, force: builtins.bool = False) -> np.ndarray:
        """Return the same memory as an ndarray."""

    def __array__(self, dtype: Any = None, copy: builtins.bool | None = None) -> np.ndarray: ...
    def __array_wrap__(
        self, array: np.ndarray, context: Any = None, return_scalar: builtins.bool = False
    ) -> Tensor: ...
    def __dlpack__(self, **kwargs: Any) -> Any: ...
    def __dlpack_device__(self) -> tuple[builtins.int, builtins.int]: ...
    def __bool__(self) -> builtins.bool: ...
    def __int__(self) -> builtins.int: ...
    def __float__(self) -> builtins.float: ...
    def _scalar(self) -> Any: ...
    def _real_scalar(self) -> Any: ...
    def __complex__(self) -> complex: ...
    def __index__(self) -> builtins.int: ...
    def __len__(self) -> builtins.int: ...
    def __contains__(self, value: Any) -> builtins.bool: ...
    def __hash__(self) -> builtins.int: ...
    def __repr__(self) -> str: ...
    def __format__(self, spec: str) -> str: ...
    @overload
    def type(self, dtype: None = None) -> str: ...
    @overload
    def type(self, dtype: Any, non_blocking: builtins.bool = False) -> Tensor: ...
    def __deepcopy__(self, memo: dict) -> Tensor: ...
    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple: ...
    def backward(
        self,
        gradient: Tensor | None = None,
        retain_graph: builtins.bool | None = None,
        create_graph: builtins.bool = False,
        inputs: Tensor | Sequence[Tensor] | None = None,
    ) -> None:
        """Add to the ``.grad`` of each leaf the gradient of this tensor; see `autograd.backward`."""

    def register_hook(self, hook: Callable) -> RemovableHandle:
        """Call ``hook(grad)`` in each backward pass, once the gradient of the tensor is complete."""

    def register_post_accumulate_grad_hook(self, hook: Callable) -> RemovableHandle:
        """Call ``hook(tensor)`` after each accumulation into a leaf's ``.grad``."""

    def retain_grad(self) -> None:
        """Store the gradient in ``.grad`` although the tensor is not a leaf."""

    def hardshrink(self, lambd: builtins.float = 0.5) -> Tensor:
        """Return each element, and 0 where it lies in [-lambd, lambd]."""

    def prelu(self, weight: Tensor) -> Tensor:
        """Return each element, times its channel's weight where it is negative."""

    def relu(self, inplace: builtins.bool = False) -> Tensor:
        """Return the rectified linear unit max(x, 0) of each element x; NaN stays."""

    def relu_(self) -> Tensor:
        """Replace the negative elements by 0, in place."""

    def add(self, other: Any, *older: Any, alpha: Any = 1) -> Tensor:
        """Return input + alpha * other, element by element."""

    def conj(self) -> Tensor:
        """Return the complex conjugate of a tensor or number; of a real one, itself."""

    def div(self, other: Any, *, rounding_mode: str | None = None) -> Tensor:
        """Return input / other, element by element; integers are divided as floats."""

    divide = div
    def mul(self, other: Any) -> Tensor:
        """Return input * other, element by element."""

    multiply = mul
    def neg(self) -> Tensor:
        """Return -input."""

    negative = neg
    def positive(self) -> Tensor:
        """Return the tensor itself: +input."""

    def sub(self, other: Any, *older: Any, alpha: Any = 1) -> Tensor:
        """Return input - alpha * other, element by element; the rest as for `add`."""

    subtract = sub
    true_divide = div
    def add_(self, other: Any, *older: Any, alpha: Any = 1) -> Tensor:
        """Replace the tensor by `add` of it and another, in place."""

    def div_(self, other: Any, *, rounding_mode: str | None = None) -> Tensor:
        """Replace the tensor by `div` of it and another, in place."""

    divide_ = div_
    def mul_(self, other: Any) -> Tensor:
        """Replace the tensor by `mul` of it and another, in place."""

    multiply_ = mul_
    def sub_(self, other: Any, *older: Any, alpha: Any = 1) -> Tensor:
        """Replace the tensor by `sub` of it and another, in place."""

    subtract_ = sub_
    true_divide_ = div_
    def __add__(self, other: Any) -> Tensor: ...
    def __iadd__(self, other: Any) -> Tensor: ...
    def __imul__(self, other: Any) -> Tensor: ...
    def __isub__(self, other: Any) -> Tensor: ...
    def __itruediv__(self, other: Any) -> Tensor: ...
    def __mul__(self, other: Any) -> Tensor: ...
    def __neg__(self) -> Tensor: ...
    def __pos__(self) -> Tensor: ...
    def __radd__(self, other: Any) -> Tensor: ...
    def __rmul__(self, other: Any) -> Tensor: ...
    def __rsub__(self, other: Any) -> Tensor: ...
    def __rtruediv__(self, other: Any) -> Tensor: ...
    def __sub__(self, other: Any) -> Tensor: ...
    def __truediv__(self, other: Any) -> Tensor: ...
    def negative_(self) -> Tensor:
        """Replace the tensor, in place, by `neg` of it."""

    neg_ = neg
    def broadcast_to(self, size: Sequence[builtins.int]) -> Tensor:
        """Return a view of ``input`` expanded to ``size``."""

    def expand(self, *size: Any) -> Tensor:
        """Return a view in which axes of size 1 are repeated, and new ones put before them."""

    def expand_as(self, other: Tensor) -> Tensor:
        """Return a view of ``input`` expanded to the shape of ``other``."""

    def sum_to_size(self, *size: builtins.int) -> Tensor:
        """Return ``input`` summed over the axes along which ``size`` would be repeated to give it."""

    def allclose(
        self,
        other: Tensor,
        rtol: builtins.float = 1e-05,
        atol: builtins.float = 1e-08,
        equal_nan: builtins.bool = False,
    ) -> builtins.bool:
        """Return whether `isclose`, which has the same arguments, holds everywhere."""

    def eq(self, other: Any) -> Tensor:
        """Return where the elements are equal to a tensor's or to a number."""

    def equal(self, other: Tensor) -> builtins.bool:
        """Return whether two tensors have the same shape and equal elements."""

    def ge(self, other: Any) -> Tensor:
        """Return where the elements are at least a tensor's or a number."""

    def greater(self, other: Any) -> Tensor:
        """Return where the elements are greater than a tensor's or than a number."""

    greater_equal = ge
    gt = greater
    def is_nonzero(self) -> builtins.bool:
        """Return whether the one element of a tensor is not zero."""

    def isclose(
        self,
        other: Tensor,
        rtol: builtins.float = 1e-05,
        atol: builtins.float = 1e-08,
        equal_nan: builtins.bool = False,
    ) -> Tensor:
        """Return where |input - other| <= atol + rtol * |other|."""

    def isfinite(self) -> Tensor:
        """Return where the elements are neither infinite nor NaN."""

    def isinf(self) -> Tensor:
        """Return where the elements are infinite."""

    def isnan(self) -> Tensor:
        """Return where the elements are not a number."""

    def le(self, other: Any) -> Tensor:
        """Return where the elements are at most a tensor's or a number."""

    def less(self, other: Any) -> Tensor:
        """Return where the elements are less than a tensor's or than a number."""

    less_equal = le
    lt = less
    def ne(self, other: Any) -> Tensor:
        """Return where the elements are not equal to a tensor's or to a number."""

    not_equal = ne
    def unique(
        self,
        sorted: builtins.bool = True,
        return_inverse: builtins.bool = False,
        return_counts: builtins.bool = False,
        dim: builtins.int | None = None,
    ) -> Any:
        """Return the unique elements in ascending order."""

    def __eq__(self, other: Any) -> Tensor: ...  # type: ignore[override]
    def __ge__(self, other: Any) -> Tensor: ...
    def __gt__(self, other: Any) -> Tensor: ...
    def __le__(self, other: Any) -> Tensor: ...
    def __lt__(self, other: Any) -> Tensor: ...
    def __ne__(self, other: Any) -> Tensor: ...  # type: ignore[override]
    eq_ = eq
    ne_ = ne
    lt_ = less
    le_ = le
    gt_ = greater
    ge_ = ge
    @property
    def imag(self) -> Tensor:
        """Return a view of the imaginary parts."""

    @property
    def real(self) -> Tensor:
        """Return a view of the real parts; a real tensor itself."""

    def clone(self, *, memory_format: memory_format = ...) -> Tensor:
        """Return a copy, through which gradients flow back."""

    def bool(self, memory_format: memory_format = ...) -> Tensor:
        """Return the tensor in torch.bool; itself if that is its dtype."""

    def byte(self, memory_format: memory_format = ...) -> Tensor:
        """Return the tensor in torch.uint8; itself if that is its dtype."""

    def cdouble(self, memory_format: memory_format = ...) -> Tensor:
        """Return the tensor in torch.complex128; itself if that is its dtype."""

    def cfloat(self, memory_format: memory_format = ...) -> Tensor:
        """Return the tensor in torch.complex64; itself if that is its dtype."""

    def char(self, memory_format: memory_format = ...) -> Tensor:
        """Return the tensor in torch.int8; itself if that is its dtype."""

    def contiguous(self, memory_format: memory_format = ...) -> Tensor:
        """Return the tensor contiguous in a memory format; itself if it already is."""

    def copy_(self, src: Any, non_blocking: builtins.bool = False) -> Tensor:
        """Replace the values by those of another tensor, or a number, which broadcast to them."""

    def cpu(self, memory_format: memory_format = ...) -> Tensor:
        """Return the tensor itself: it is on the CPU."""

    def cuda(self, device: Any = None, *args: Any, **kwargs: Any) -> Tensor:
        """Raise RuntimeError: there is no other device than the CPU."""

    def detach_(self) -> Tensor:
        """Detach the tensor from the graph in place; it becomes a leaf."""

    def double(self, memory_format: memory_format = ...) -> Tensor:
        """Return the tensor in torch.float64; itself if that is its dtype."""

    def fill_(self, value: Any) -> Tensor:
        """Replace every value by a number, or by that of a tensor without axes."""

    def float(self, memory_format: memory_format = ...) -> Tensor:
        """Return the tensor in torch.float32; itself if that is its dtype."""

    def half(self, memory_format: memory_format = ...) -> Tensor:
        """Return the tensor in torch.float16; itself if that is its dtype."""

    def int(self, memory_format: memory_format = ...) -> Tensor:
        """Return the tensor in torch.int32; itself if that is its dtype."""

    def long(self, memory_format: memory_format = ...) -> Tensor:
        """Return the tensor in torch.int64; itself if that is its dtype."""

    def new_empty(self, *size: Any, **kwargs: Any) -> Tensor:
        """Return an uninitialised tensor, of this tensor's dtype unless given."""

    def new_full(self, size: Any, fill_value: Any, **kwargs: Any) -> Tensor:
        """Return a tensor of one number, of this tensor's dtype unless given."""

    def new_ones(self, *size: Any, **kwargs: Any) -> Tensor:
        """Return a tensor of ones, of this tensor's dtype unless given."""

    def new_tensor(self, data: Any, **kwargs: Any) -> Tensor:
        """Copy ``data`` into a new tensor, of this tensor's dtype unless given."""

    def new_zeros(self, *size: Any, **kwargs: Any) -> Tensor:
        """Return a tensor of zeros, of this tensor's dtype unless given."""

    def requires_grad_(self, requires_grad: builtins.bool = True) -> Tensor:
        """Set whether operations on this leaf are recorded; return it."""

    def short(self, memory_format: memory_format = ...) -> Tensor:
        """Return the tensor in torch.int16; itself if that is its dtype."""

    def to(
        self,
        *args: Any,
        dtype: Any = None,
        device: Any = None,
        other: Tensor | None = None,
        non_blocking: builtins.bool = False,
        copy: builtins.bool = False,
        memory_format: memory_format = ...,
    ) -> Tensor:
        """Return the tensor in another dtype or memory format; itself if it already is."""

    def type_as(self, other: Tensor) -> Tensor:
        """Return the tensor in the dtype of another."""

    def zero_(self) -> Tensor:
        """Replace every value by zero."""

    def abs(self) -> Tensor:
        """Return the absolute value of each element, a real number."""

    absolute = abs
    def acos(self) -> Tensor:
        """Return the angle whose cosine each element is, in radians."""

    def addcdiv(self, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
        """Return input + value * tensor1 / tensor2, element by element; the shapes broadcast."""

    def addcmul(self, tensor1: Any, tensor2: Tensor, *, value: Any = 1) -> Tensor:
        """Return input + value * tensor1 * tensor2, element by element; the shapes broadcast."""

    arccos = acos
    def arcsin(self) -> Tensor:
        """Return the angle whose sine each element is, in radians."""

    def arctan(self) -> Tensor:
        """Return the angle whose tangent each element is, in radians."""

    def arctan2(self, other: Tensor) -> Tensor:
        """Return the angle in radians of the point (other, input), seen from the origin."""

    asin = arcsin
    atan = arctan
    atan2 = arctan2
    def cos(self) -> Tensor:
        """Return the cosine of each element, an angle in radians."""

    def cosh(self) -> Tensor:
        """Return the hyperbolic cosine of each element."""

    def erf(self) -> Tensor:
        """Return the error function of each element, 2/sqrt(pi) times the integral of exp(-t^2)."""

    def exp(self) -> Tensor:
        """Return e to the power of each element."""

    def exp2(self) -> Tensor:
        """Return 2 to the power of each element."""

    def expm1(self) -> Tensor:
        """Return exp(x) - 1 of each element x, accurate near 0."""

    def lerp(self, end: Tensor, weight: Any) -> Tensor:
        """Return input + weight * (end - input), element by element."""

    def log(self) -> Tensor:
        """Return the natural logarithm of each element."""

    def log1p(self) -> Tensor:
        """Return log(1 + x) of each element x, accurate near 0."""

    def log2(self) -> Tensor:
        """Return the logarithm to base 2 of each element."""

    def log10(self) -> Tensor:
        """Return the logarithm to base 10 of each element."""

    def pow(self, exponent: Any) -> Tensor:
        """Return input to the power of exponent, element by element."""

    def reciprocal(self) -> Tensor:
        """Return 1 over each element."""

    def rsqrt(self) -> Tensor:
        """Return 1 over the square root of each element."""

    def sgn(self) -> Tensor:
        """Return each element over its absolute value, and 0 for 0."""

    def sigmoid(self) -> Tensor:
        """Return 1 / (1 + exp(-x)) of each element x."""

    def sign(self) -> Tensor:
        """Return -1, 0 or 1, by the sign of each element."""

    def sin(self) -> Tensor:
        """Return the sine of each element, an angle in radians."""

    def sinh(self) -> Tensor:
        """Return the hyperbolic sine of each element."""

    def sqrt(self) -> Tensor:
        """Return the square root of each element, NaN of negative ones."""

    def square(self) -> Tensor:
        """Return the square of each element."""

    def tan(self) -> Tensor:
        """Return the tangent of each element, an angle in radians."""

    def tanh(self) -> Tensor:
        """Return the hyperbolic tangent of each element."""

    def __abs__(self) -> Tensor: ...
    def __ipow__(self, exponent: Any) -> Tensor: ...
    def __pow__(self, exponent: Any) -> Tensor: ...
    def __rpow__(self, other: Any) -> Tensor: ...
    abs_ = abs
    acos_ = acos
    addcdiv_ = addcdiv
    addcmul_ = addcmul
    asin_ = arcsin
    atan_ = arctan
    atan2_ = arctan2
    cos_ = cos
    cosh_ = cosh
    erf_ = erf
    exp_ = exp
    exp2_ = exp2
    expm1_ = expm1
    lerp_ = lerp
    log_ = log
    log10_ = log10
    log1p_ = log1p
    log2_ = log2
    pow_ = pow
    reciprocal_ = reciprocal
    rsqrt_ = rsqrt
    sgn_ = sgn
    sigmoid_ = sigmoid
    sign_ = sign
    sin_ = sin
    sinh_ = sinh
    sqrt_ = sqrt
    square_ = square
    tan_ = tan
    tanh_ = tanh
    def absolute_(self) -> Tensor:
        """Replace the tensor, in place, by `abs` of it."""

    def arccos_(self) -> Tensor:
        """Replace the tensor, in place, by `acos` of it."""

    def arcsin_(self) -> Tensor:
        """Replace the tensor, in place, by `asin` of it."""

    def arctan_(self) -> Tensor:
        """Replace the tensor, in place, by `atan` of it."""

    def arctan2_(self, other: Tensor) -> Tensor:
        """Replace the tensor, in place, by `atan2` of it."""

    def index_add(
        self, dim: builtins.int, index: Tensor, source: Tensor, *, alpha: Any = 1
    ) -> Tensor:
        """Return a copy with alpha * source[i] added at place index[i] of an axis, for every i."""

    def index_copy(self, dim: builtins.int, index: Tensor, source: Tensor) -> Tensor:
        """Return a copy with source[i] at place index[i] of an axis, for every i."""

    def index_fill(self, dim: builtins.int, index: Tensor, value: Any) -> Tensor:
        """Return a copy with a number at some places of an axis."""

    def index_select(self, dim: builtins.int, index: Tensor) -> Tensor:
        """Return a copy of the places of an axis that a vector of indices names."""

    def repeat_interleave(
        self,
        repeats: Any = None,
        dim: builtins.int | None = None,
        *,
        output_size: builtins.int | None = None,
    ) -> Tensor:
        """Return each place of an axis repeated where it stands."""

    def index_add_(
        self, dim: builtins.int, index: Tensor, source: Tensor, *, alpha: Any = 1
    ) -> Tensor:
        """Do what `index_add` does, in place."""

    def index_copy_(self, dim: builtins.int, index: Tensor, source: Tensor) -> Tensor:
        """Do what `index_copy` does, in place."""

    def index_fill_(self, dim: builtins.int, index: Tensor, value: Any) -> Tensor:
        """Do what `index_fill` does, in place."""

    def argwhere(self) -> Tensor:
        """Return the indices of the nonzero elements, one row each."""

    def index_put(
        self, indices: Sequence[Tensor | None], values: Tensor, accumulate: builtins.bool = False
    ) -> Tensor:
        """Return a copy with other values at some places."""

    def nonzero(self, *, out: None = None, as_tuple: builtins.bool = False) -> Any:
        """Return the indices of the nonzero elements."""

    def index_put_(
        self, indices: Sequence[Tensor | None], values: Tensor, accumulate: builtins.bool = False
    ) -> Tensor:
        """Replace values at some places in place; see `index_put`."""

    def __getitem__(self, key: Any) -> Tensor: ...
    def __setitem__(self, key: Any, value: Any) -> None: ...
    def bitwise_and(self, other: Any) -> Tensor:
        """Return the bits that both integers, or bools, have."""

    def bitwise_left_shift(self, other: Any) -> Tensor:
        """Return the integers' bits moved up by ``other`` places."""

    def bitwise_not(self) -> Tensor:
        """Invert every bit of integers; negate bools."""

    def bitwise_or(self, other: Any) -> Tensor:
        """Return the bits that one of two integers, or bools, has."""

    def bitwise_right_shift(self, other: Any) -> Tensor:
        """Return the integers' bits moved down by ``other`` places; the sign stays."""

    def bitwise_xor(self, other: Any) -> Tensor:
        """Return the bits that exactly one of two integers, or bools, has."""

    def logical_and(self, other: Tensor) -> Tensor:
        """Return where both elements are not zero."""

    def logical_not(self) -> Tensor:
        """Return where the elements are zero."""

    def logical_or(self, other: Tensor) -> Tensor:
        """Return where one of the elements is not zero."""

    def logical_xor(self, other: Tensor) -> Tensor:
        """Return where exactly one of the elements is not zero."""

    def __invert__(self) -> Tensor: ...
    bitwise_and_ = bitwise_and
    bitwise_left_shift_ = bitwise_left_shift
    bitwise_not_ = bitwise_not
    bitwise_or_ = bitwise_or
    bitwise_right_shift_ = bitwise_right_shift
    bitwise_xor_ = bitwise_xor
    logical_and_ = logical_and
    logical_not_ = logical_not
    logical_or_ = logical_or
    logical_xor_ = logical_xor
    def __and__(self, other: Any) -> Tensor: ...
    def __rand__(self, other: Any) -> Tensor: ...
    def __iand__(self, other: Any) -> Tensor: ...
    def __lshift__(self, other: Any) -> Tensor: ...
    def __rlshift__(self, other: Any) -> Tensor: ...
    def __ilshift__(self, other: Any) -> Tensor: ...
    def __or__(self, other: Any) -> Tensor: ...
    def __ror__(self, other: Any) -> Tensor: ...
    def __ior__(self, other: Any) -> Tensor: ...
    def __rshift__(self, other: Any) -> Tensor: ...
    def __rrshift__(self, other: Any) -> Tensor: ...
    def __irshift__(self, other: Any) -> Tensor: ...
    def __xor__(self, other: Any) -> Tensor: ...
    def __rxor__(self, other: Any) -> Tensor: ...
    def __ixor__(self, other: Any) -> Tensor: ...
    def masked_fill(self, mask: Tensor, value: Any) -> Tensor:
        """Return a copy with a number where a mask, which broadcasts, is True."""

    def masked_scatter(self, mask: Tensor, source: Tensor) -> Tensor:
        """Return a copy with the first elements of ``source``, in order, where a mask is True."""

    def masked_select(self, mask: Tensor) -> Tensor:
        """Return a vector of the elements where a mask, which broadcasts, is True."""

    def masked_fill_(self, mask: Tensor, value: Any) -> Tensor:
        """Do what `masked_fill` does, in place."""

    def masked_scatter_(self, mask: Tensor, source: Tensor) -> Tensor:
        """Do what `masked_scatter` does, in place."""

    def addmm(self, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
        """Return beta * input + alpha * (mat1 @ mat2)."""

    def addmv(self, mat: Tensor, vec: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
        """Return beta * input + alpha * (mat @ vec)."""

    def baddbmm(self, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
        """Return beta * input + alpha * bmm(batch1, batch2)."""

    def bmm(self, mat2: Tensor) -> Tensor:
        """Return the product of each of N pairs of matrices."""

    def dot(self, tensor: Tensor) -> Tensor:
        """Return the sum of the products of two vectors' elements; nothing is conjugated."""

    def ger(self, vec2: Tensor) -> Tensor:
        """Return the products of all pairs of elements of two vectors."""

    def inner(self, other: Tensor) -> Tensor:
        """Return the sums of products over the last axes of both."""

    def matmul(self, other: Tensor) -> Tensor:
        """Return the matrix product; the leading axes of two stacks of matrices broadcast."""

    def mm(self, mat2: Tensor) -> Tensor:
        """Return the product of two matrices."""

    def mv(self, vec: Tensor) -> Tensor:
        """Return the product of a matrix and a vector."""

    outer = ger
    def vdot(self, other: Tensor) -> Tensor:
        """Return `dot` of the first vector, conjugated, and the second."""

    addmm_ = addmm
    addmv_ = addmv
    baddbmm_ = baddbmm
    def __matmul__(self, y: Any) -> Tensor: ...
    def __rmatmul__(self, y: Any) -> Tensor: ...
    def bincount(self, weights: Tensor | None = None, minlength: builtins.int = 0) -> Tensor:
        """Count each number from 0 to the largest, or sum the weights of each."""

    def diff(
        self,
        n: builtins.int = 1,
        dim: builtins.int = -1,
        prepend: Tensor | None = None,
        append: Tensor | None = None,
    ) -> Tensor:
        """Return the differences of neighbours along an axis; of bools whether they differ."""

    def trace(self) -> Tensor:
        """Return the sum of a matrix's diagonal; of integers as int64."""

    def amax(self, dim: Any = (), keepdim: builtins.bool = False) -> Tensor:
        """Return the largest element over some axes; equal ones share the gradient."""

    def amin(self, dim: Any = (), keepdim: builtins.bool = False) -> Tensor:
        """Return the smallest element over some axes; equal ones share the gradient."""

    def aminmax(
        self, *, dim: builtins.int | None = None, keepdim: builtins.bool = False
    ) -> tuple[Tensor, Tensor]:
        """Return the smallest and the largest element, of all or along an axis, as (min, max)."""

    def argmax(self, dim: builtins.int | None = None, keepdim: builtins.bool = False) -> Tensor:
        """Return the index of the largest element, the first of equal ones, of all or along an axis."""

    def argmin(self, dim: builtins.int | None = None, keepdim: builtins.bool = False) -> Tensor:
        """Return the index of the smallest element, the first of equal ones, of all or along an axis."""

    def argsort(
        self,
        dim: builtins.int = -1,
        descending: builtins.bool = False,
        stable: builtins.bool = False,
    ) -> Tensor:
        """Return the indices that sort the elements along an axis; the rest as for `sort`."""

    @overload
    def max(self, dim: builtins.int, keepdim: builtins.bool = False) -> tuple[Tensor, Tensor]: ...
    @overload
    def max(self, dim: None = None) -> Tensor: ...
    @overload
    def max(self, dim: Tensor) -> Tensor: ...
    def median(self, dim: builtins.int | None = None, keepdim: builtins.bool = False) -> Any:
        """Return the median, the lower one of two; along an axis, with its index."""

    @overload
    def min(self, dim: builtins.int, keepdim: builtins.bool = False) -> tuple[Tensor, Tensor]: ...
    @overload
    def min(self, dim: None = None) -> Tensor: ...
    @overload
    def min(self, dim: Tensor) -> Tensor: ...
    def sort(
        self,
        dim: builtins.int = -1,
        descending: builtins.bool = False,
        stable: builtins.bool = False,
    ) -> tuple[Tensor, Tensor]:
        """Return the elements sorted along an axis, and their indices, as (values, indices)."""

    def topk(
        self,
        k: builtins.int,
        dim: builtins.int = -1,
        largest: builtins.bool = True,
        sorted: builtins.bool = True,
    ) -> tuple[Tensor, Tensor]:
        """Return the ``k`` largest elements along an axis, and their indices, as (values, indices)."""

    def clamp(self, min: Any = None, max: Any = None) -> Tensor:
        """Return the elements moved to the nearest value between ``min`` and ``max``."""

    def clamp_max(self, max: Any) -> Tensor:
        """Return the smaller of each element and ``max``, a number or a Tensor."""

    def clamp_min(self, min: Any) -> Tensor:
        """Return the larger of each element and ``min``, a number or a Tensor."""

    clip = clamp
    def fmax(self, other: Tensor) -> Tensor:
        """Return the larger of two tensors, element by element; where one is NaN, the other."""

    def fmin(self, other: Tensor) -> Tensor:
        """Return the smaller of two tensors, element by element; where one is NaN, the other."""

    def maximum(self, other: Tensor) -> Tensor:
        """Return the larger of two tensors, element by element; NaN where either is."""

    def minimum(self, other: Tensor) -> Tensor:
        """Return the smaller of two tensors, element by element; NaN where either is."""

    def nan_to_num(
        self,
        nan: builtins.float | None = 0.0,
        posinf: builtins.float | None = None,
        neginf: builtins.float | None = None,
    ) -> Tensor:
        """Return the elements with NaN and the infinities replaced by numbers."""

    def where(self, condition: Tensor, other: Any) -> Tensor:
        """Return the tensor where the condition is true, and ``other`` elsewhere."""

    def clip_(self, min: Any = None, max: Any = None) -> Tensor:
        """Replace the tensor, in place, by `clamp` of it."""

    clamp_ = clamp
    clamp_max_ = clamp_max
    clamp_min_ = clamp_min
    nan_to_num_ = nan_to_num
    def flip(self, dims: Any, *more: builtins.int) -> Tensor:
        """Return a copy with the order along some axes reversed."""

    def fliplr(self) -> Tensor:
        """Return a copy with the columns in the opposite order."""

    def flipud(self) -> Tensor:
        """Return a copy with the rows in the opposite order."""

    def roll(self, shifts: Any, dims: Any = None) -> Tensor:
        """Return a copy moved along some axes; what leaves at the end comes in at the start."""

    def rot90(self, k: builtins.int = 1, dims: Sequence[builtins.int] = ...) -> Tensor:
        """Return a copy turned k times by 90 degrees, from axis dims[0] towards dims[1]."""

    def tile(self, dims: Any, *more: builtins.int) -> Tensor:
        """Return the tensor repeated along its last axes, as NumPy's tile does."""

    def repeat(self, repeats: Any, *more: builtins.int) -> Tensor:
        """Return the tensor repeated along its axes, and along new ones before them."""

    def all(self, dim: Any = None, keepdim: builtins.bool = False) -> Tensor:
        """Return whether every element, of all or over some axes, is not zero."""

    def any(self, dim: Any = None, keepdim: builtins.bool = False) -> Tensor:
        """Return whether any element, of all or over some axes, is not zero."""

    def count_nonzero(self, dim: Any = None) -> Tensor:
        """Return the number of elements, of all or over some axes, that are not zero."""

    def cumprod(self, dim: builtins.int, *, dtype: Any = None) -> Tensor:
        """Return cumulative products along an axis."""

    def cumsum(self, dim: builtins.int, *, dtype: Any = None) -> Tensor:
        """Return cumulative sums along an axis; of integers as int64."""

    def logsumexp(self, dim: Any, keepdim: builtins.bool = False) -> Tensor:
        """Return the logarithm of the sum of exponentials over some axes, without overflow."""

    def mean(self, dim: Any = None, keepdim: builtins.bool = False, *, dtype: Any = None) -> Tensor:
        """Return the mean of all elements, or over some axes; NaN where there are none."""

    def nanmean(
        self, dim: Any = None, keepdim: builtins.bool = False, *, dtype: Any = None
    ) -> Tensor:
        """Return the mean of all elements, or over some axes, without NaNs."""

    def nansum(
        self, dim: Any = None, keepdim: builtins.bool = False, *, dtype: Any = None
    ) -> Tensor:
        """Return the sum of all elements, or over some axes, without NaNs."""

    def norm(
        self, p: Any = "fro", dim: Any = None, keepdim: builtins.bool = False, dtype: Any = None
    ) -> Tensor:
        """Return the norm (sum of |x|^p)^(1/p) of all elements, or over some axes."""

    def prod(
        self, dim: builtins.int | None = None, keepdim: builtins.bool = False, *, dtype: Any = None
    ) -> Tensor:
        """Return the product of all elements, or over one axis; of integers and bools as int64."""

    def sum(self, dim: Any = None, keepdim: builtins.bool = False, *, dtype: Any = None) -> Tensor:
        """Return the sum of all elements, or over some axes."""

    cumprod_ = cumprod
    cumsum_ = cumsum
    def ceil(self) -> Tensor:
        """Return the smallest integer that is not below each element."""

    def floor(self) -> Tensor:
        """Return the largest integer that is not above each element."""

    def floor_divide(self, other: Any) -> Tensor:
        """Return floor(input / other); it has no gradient."""

    def fmod(self, other: Any) -> Tensor:
        """Return input - trunc(input / other) * other: C's fmod, with the sign of ``input``."""

    def frac(self) -> Tensor:
        """Return the fraction of each element, with its sign."""

    def remainder(self, other: Any) -> Tensor:
        """Return input - floor(input / other) * other: Python's %, with the sign of ``other``."""

    def round(self, *, decimals: builtins.int = 0) -> Tensor:
        """Return each element rounded to ``decimals`` places, halves to the even neighbour."""

    def trunc(self) -> Tensor:
        """Return each element without its fraction."""

    def __floordiv__(self, other: Any) -> Tensor: ...
    def __ifloordiv__(self, other: Any) -> Tensor: ...
    def __imod__(self, other: Any) -> Tensor: ...
    def __mod__(self, other: Any) -> Tensor: ...
    def __rfloordiv__(self, other: Any) -> Tensor: ...
    def __rmod__(self, other: Any) -> Tensor: ...
    ceil_ = ceil
    floor_ = floor
    floor_divide_ = floor_divide
    fmod_ = fmod
    frac_ = frac
    remainder_ = remainder
    round_ = round
    trunc_ = trunc
    def bernoulli(
        self, p: builtins.float | None = None, *, generator: Generator | None = None
    ) -> Tensor:
        """Return 1 with the probability that each element of ``input`` is, and else 0."""

    def bernoulli_(
        self, p: builtins.float | Tensor = 0.5, *, generator: Generator | None = None
    ) -> Tensor:
        """Fill the tensor with 1 with probability p, and else 0."""

    def exponential_(
        self, lambd: builtins.float = 1.0, *, generator: Generator | None = None
    ) -> Tensor:
        """Fill the tensor with exponentially distributed numbers, of mean 1 / lambd."""

    def multinomial(
        self,
        num_samples: builtins.int,
        replacement: builtins.bool = False,
        *,
        generator: Generator | None = None,
    ) -> Tensor:
        """Return indices drawn with probability proportional to the weights ``input``."""

    def normal_(
        self,
        mean: builtins.float = 0.0,
        std: builtins.float = 1.0,
        *,
        generator: Generator | None = None,
    ) -> Tensor:
        """Fill the tensor with normally distributed numbers."""

    def random_(
        self,
        from_: builtins.int = 0,
        to: builtins.int | None = None,
        *,
        generator: Generator | None = None,
    ) -> Tensor:
        """Fill the tensor with integers from [from_, to)."""

    def uniform_(
        self,
        from_: builtins.float = 0.0,
        to: builtins.float = 1.0,
        *,
        generator: Generator | None = None,
    ) -> Tensor:
        """Fill the tensor with numbers from [from_, to), all equally likely."""

    def gather(
        self, dim: builtins.int, index: Tensor, *, sparse_grad: builtins.bool = False
    ) -> Tensor:
        """Return out[.., i, ..] = input[.., index[.., i, ..], ..] along the axis ``dim``."""

    def scatter(
        self,
        dim: builtins.int,
        index: Tensor,
        src: Any = None,
        *,
        value: Any = None,
        reduce: str | None = None,
    ) -> Tensor:
        """Return a copy with elements replaced at indices along an axis."""

    def scatter_add(self, dim: builtins.int, index: Tensor, src: Tensor) -> Tensor:
        """Return a copy with elements added at indices along an axis."""

    def take(self, index: Tensor) -> Tensor:
        """Return the elements that indices name, counted as if ``input`` had one axis."""

    def take_along_dim(self, indices: Tensor, dim: builtins.int | None = None) -> Tensor:
        """Return the elements that indices, as argsort gives them, name along an axis."""

    def scatter_(
        self,
        dim: builtins.int,
        index: Tensor,
        src: Any = None,
        *,
        value: Any = None,
        reduce: str | None = None,
    ) -> Tensor:
        """Do what `scatter` does, in place."""

    def scatter_add_(self, dim: builtins.int, index: Tensor, src: Tensor) -> Tensor:
        """Do what `scatter_add` does, in place."""

    def adjoint(self) -> Tensor:
        """Return the last two axes exchanged, and complex numbers conjugated."""

    def flatten(self, start_dim: builtins.int = 0, end_dim: builtins.int = -1) -> Tensor:
        """Join the axes from ``start_dim`` to ``end_dim`` into one."""

    def moveaxis(self, source: Any, destination: Any) -> Tensor:
        """Return a view with some axes at other places; the others keep their order."""

    movedim = moveaxis
    def permute(self, dims: Any, *more: builtins.int) -> Tensor:
        """Return a view with the axes in another order."""

    def ravel(self) -> Tensor:
        """Return the elements as a vector."""

    def reshape(self, shape: Any, *more: builtins.int) -> Tensor:
        """Return the elements in another shape: a view where one can be made, else a copy."""

    def squeeze(self, dim: builtins.int | Sequence[builtins.int] | None = None) -> Tensor:
        """Return a view without the axes of size 1: all of them, or those among ``dim``."""

    def swapaxes(self, axis0: builtins.int, axis1: builtins.int) -> Tensor:
        """Return a view with two axes exchanged: `transpose` under NumPy's name."""

    def swapdims(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """Return a view with two axes exchanged."""

    def t(self) -> Tensor:
        """Return a view of a matrix with its axes exchanged; vectors and numbers stay as they are."""

    transpose = swapdims
    def unflatten(self, dim: builtins.int, sizes: Sequence[builtins.int]) -> Tensor:
        """Split an axis into several of the given sizes, one of which may be -1."""

    def unsqueeze(self, dim: builtins.int) -> Tensor:
        """Return a view with a new axis of size 1 at ``dim``."""

    @property
    def H(self) -> Tensor:
        """Return ``x.H``: the adjoint of a matrix."""

    @property
    def T(self) -> Tensor:
        """Return ``x.T``: a view with the axes in the opposite order."""

    @property
    def mH(self) -> Tensor:
        """Return the last two axes exchanged, and complex numbers conjugated."""

    @property
    def mT(self) -> Tensor:
        """Return ``x.mT``: a view with the last two axes exchanged."""

    def reshape_as(self, other: Tensor) -> Tensor:
        """Return the elements in the shape of another tensor."""

    def view(self, size: Any, *more: builtins.int) -> Tensor:
        """Return the same memory in another shape, or read as another dtype."""

    def view_as(self, other: Tensor) -> Tensor:
        """Return a view in the shape of another tensor."""

    def diag(self, diagonal: builtins.int = 0) -> Tensor:
        """Return the diagonal of a matrix, copied, or the matrix with a vector as its diagonal."""

    def diag_embed(
        self, offset: builtins.int = 0, dim1: builtins.int = -2, dim2: builtins.int = -1
    ) -> Tensor:
        """Return matrices of zeros with the last axis of ``input`` as their diagonals."""

    def diagonal(
        self, offset: builtins.int = 0, dim1: builtins.int = 0, dim2: builtins.int = 1
    ) -> Tensor:
        """Return the view of the diagonals of the matrices that two axes make, as the last axis."""

    def narrow(
        self, dim: builtins.int, start: builtins.int | Tensor, length: builtins.int
    ) -> Tensor:
        """Return a view of ``length`` elements of an axis from ``start`` on."""

    def select(self, dim: builtins.int, index: builtins.int) -> Tensor:
        """Return a view of one slice along an axis, which is removed."""

    def tril(self, diagonal: builtins.int = 0) -> Tensor:
        """Return matrices with zeros above a diagonal; 0 is the main one, 1 the one right of it."""

    def triu(self, diagonal: builtins.int = 0) -> Tensor:
        """Return matrices with zeros below a diagonal; 0 is the main one, 1 the one right of it."""

    def unfold(self, dimension: builtins.int, size: builtins.int, step: builtins.int) -> Tensor:
        """Return a view of the windows of ``size`` elements along an axis, ``step`` apart."""

    tril_ = tril
    triu_ = triu
    def log_softmax(self, dim: builtins.int | None = None, dtype: Any = None) -> Tensor:
        """Return the logarithm of `softmax`, which has the same arguments, without its underflow."""

    def softmax(self, dim: builtins.int | None = None, dtype: Any = None) -> Tensor:
        """Return exp(x) over the sum of exp(x) along an axis."""

    def erfinv(self) -> Tensor:
        """Return the inverse error function of each element; NaN outside [-1, 1]."""

    def logaddexp(self, other: Tensor) -> Tensor:
        """Return log(exp(input) + exp(other)), element by element, without overflow."""

    def xlogy(self, other: Any) -> Tensor:
        """Return input * log(other), element by element, and 0 where ``input`` is 0."""

    erfinv_ = erfinv
    xlogy_ = xlogy
    def chunk(self, chunks: builtins.int, dim: builtins.int = 0) -> tuple[Tensor, ...]:
        """Cut a tensor along an axis into at most ``chunks`` views of one size, but for the last."""

    def hsplit(self, indices_or_sections: Any) -> tuple[Tensor, ...]:
        """Cut a tensor along the second axis, a vector along its only one."""

    def split(
        self, split_size: builtins.int | Sequence[builtins.int], dim: builtins.int = 0
    ) -> tuple[Tensor, ...]:
        """Return views of parts of the tensor of the given size, or sizes, along an axis."""

    def tensor_split(
        self,
        indices_or_sections: builtins.int | Sequence[builtins.int] | Tensor,
        dim: builtins.int = 0,
    ) -> tuple[Tensor, ...]:
        """Cut a tensor along an axis into views as NumPy's array_split does."""

    def unbind(self, dim: builtins.int = 0) -> tuple[Tensor, ...]:
        """Return views of all slices along an axis, which is removed."""

    def vsplit(self, indices_or_sections: Any) -> tuple[Tensor, ...]:
        """Cut a tensor along the first axis."""

    def __iter__(self) -> Iterator[Tensor]: ...
    def as_strided(
        self,
        size: Sequence[builtins.int],
        stride: Sequence[builtins.int],
        storage_offset: builtins.int | None = None,
    ) -> Tensor:
        """Return a view of a tensor's memory in a shape and with strides of one's own."""

    def squeeze_(self, dim: builtins.int | Sequence[builtins.int] | None = None) -> Tensor:
        """Give the tensor the shape of its `squeeze`, and keep its memory."""

    def swapaxes_(self, axis0: builtins.int, axis1: builtins.int) -> Tensor:
        """Give the tensor the shape of its `swapaxes`, and keep its memory."""

    def swapdims_(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """Give the tensor the shape of its `transpose`, and keep its memory."""

    def t_(self) -> Tensor:
        """Give the tensor the shape of its `t`, and keep its memory."""

    transpose_ = swapdims_
    def unsqueeze_(self, dim: builtins.int) -> Tensor:
        """Give the tensor the shape of its `unsqueeze`, and keep its memory."""

    def std(
        self,
        dim: Any = None,
        unbiased: builtins.bool | None = None,
        keepdim: builtins.bool = False,
        *,
        correction: builtins.float | None = None,
    ) -> Tensor:
        """Return the standard deviation, the square root of `var`, whose arguments it takes."""

    def var(
        self,
        dim: Any = None,
        unbiased: builtins.bool | None = None,
        keepdim: builtins.bool = False,
        *,
        correction: builtins.float | None = None,
    ) -> Tensor:
        """Return the variance of all elements, or over some axes."""

def wrap(array: np.ndarray, cls: builtins.type = ...) -> Tensor:
    """Return a new leaf tensor around an ndarray, sharing its memory."""

def scalar_name(dtype: np.dtype) -> str:
    """Return PyTorch's name of a NumPy dtype in messages, such as 'Float'."""

def legacy_name(dtype: np.dtype) -> str:
    """Return PyTorch's older name of tensors of a NumPy dtype, such as 'torch.FloatTensor'."""

def from_legacy_name(name: Any) -> Any:
    """Return the NumPy dtype of a name such as 'torch.FloatTensor'; non-strings as they are."""

def _rebuild(
    cls: builtins.type,
    array: np.ndarray,
    axes: list[builtins.int],
    requires_grad: builtins.bool,
    attributes: dict,
) -> Tensor: ...
