"""Tensor with every method it has once the package is loaded; see tests/helpers/make_stub.py."""

import builtins
from collections.abc import Callable, Iterable, Iterator
from typing import Any, SupportsIndex, overload

import numpy as np

import convcore.autograd.hooks as _autograd_hooks
import convcore.functions._bind as _bind
import convcore.functions.activation as _activation
import convcore.functions.angles as _angles
import convcore.functions.arithmetic as _arithmetic
import convcore.functions.binning as _binning
import convcore.functions.broadcast as _broadcast
import convcore.functions.compare as _compare
import convcore.functions.convert as _convert
import convcore.functions.distance as _distance
import convcore.functions.elementwise as _elementwise
import convcore.functions.floats as _floats
import convcore.functions.gamma as _gamma
import convcore.functions.index_along as _index_along
import convcore.functions.indexing as _indexing
import convcore.functions.integration as _integration
import convcore.functions.logic as _logic
import convcore.functions.masked as _masked
import convcore.functions.matmul as _matmul
import convcore.functions.matrices as _matrices
import convcore.functions.memory as _memory
import convcore.functions.numerics as _numerics
import convcore.functions.order as _order
import convcore.functions.piecewise as _piecewise
import convcore.functions.products as _products
import convcore.functions.ranks as _ranks
import convcore.functions.rearrange as _rearrange
import convcore.functions.reduce as _reduce
import convcore.functions.rounding as _rounding
import convcore.functions.sampling as _sampling
import convcore.functions.scatter as _scatter
import convcore.functions.scatter_reduce as _scatter_reduce
import convcore.functions.shape as _shape
import convcore.functions.slicing as _slicing
import convcore.functions.special as _special
import convcore.functions.splitting as _splitting
import convcore.functions.strided as _strided
import convcore.functions.ternary as _ternary
import convcore.functions.variance as _variance
import convcore.random.sampling as _random_sampling
from convcore._tensor.device import device as _device
from convcore._tensor.dtypes import dtype as _dtype
from convcore._tensor.size import Size
from convcore.functions._support.results import Picked

def on_subclass(listener: Callable[[builtins.type], None]) -> None:
    """Have a function called with every new subclass of Tensor."""

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
        """Return the address of the first element; 0 on 'meta'."""

    def is_shared(self) -> builtins.bool:
        """Return whether the elements lie in memory that other processes may share."""

    def share_memory_(self) -> Tensor:
        """Move the elements to memory that child processes share, and return the tensor."""

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
    def grad(self) -> Tensor | Any:
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

    def _element(self) -> Any: ...
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
    def _repr_html_(self) -> str: ...
    def __format__(self, spec: str) -> str: ...
    @overload
    def type(self, dtype: None = None) -> str: ...
    @overload
    def type(self, dtype: Any, non_blocking: builtins.bool = False) -> Tensor: ...
    def __deepcopy__(self, memo: dict) -> Tensor: ...
    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple: ...
    backward = _bind.backward
    register_hook = _autograd_hooks.register_hook
    register_post_accumulate_grad_hook = _autograd_hooks.register_post_accumulate_grad_hook
    retain_grad = _autograd_hooks.retain_grad
    hardshrink = _activation.hardshrink
    prelu = _activation.prelu
    relu = _activation.relu
    relu_ = _activation.relu_
    def acosh(self) -> Tensor:
        """Return the inverse hyperbolic cosine of each element, NaN of those below 1."""

    angle = _angles.angle
    arccosh = acosh
    def arcsinh(self) -> Tensor:
        """Return the inverse hyperbolic sine of each element."""

    def arctanh(self) -> Tensor:
        """Return the inverse hyperbolic tangent of each element, NaN outside [-1, 1]."""

    asinh = arcsinh
    atanh = arctanh
    deg2rad = _angles.deg2rad
    hypot = _angles.hypot
    rad2deg = _angles.rad2deg
    def sinc(self) -> Tensor:
        """Return sin(pi x) / (pi x) of each element x, and 1 of 0."""

    acosh_ = acosh
    asinh_ = arcsinh
    atanh_ = arctanh
    deg2rad_ = deg2rad
    hypot_ = hypot
    rad2deg_ = rad2deg
    sinc_ = sinc
    arccosh_ = acosh
    arcsinh_ = arcsinh
    arctanh_ = arctanh
    add = _arithmetic.add
    def conj(self) -> Tensor:
        """Return the complex conjugate of a tensor or number; of a real one, itself."""

    div = _arithmetic.div
    divide = div
    mul = _arithmetic.mul
    multiply = mul
    neg = _arithmetic.neg
    negative = neg
    positive = _arithmetic.positive
    sub = _arithmetic.sub
    subtract = sub
    true_divide = div
    add_ = add
    div_ = div
    divide_ = div
    mul_ = mul
    multiply_ = mul
    sub_ = sub
    subtract_ = sub
    true_divide_ = div
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
    negative_ = neg
    neg_ = neg
    histc = _binning.histc
    histogram = _binning.histogram
    unique_consecutive = _binning.unique_consecutive
    broadcast_to = _broadcast.broadcast_to
    expand = _broadcast.expand
    expand_as = _broadcast.expand_as
    sum_to_size = _broadcast.sum_to_size
    allclose = _compare.allclose
    eq = _compare.eq
    equal = _compare.equal
    ge = _compare.ge
    greater = _compare.gt
    greater_equal = ge
    gt = greater
    is_nonzero = _compare.is_nonzero
    isclose = _compare.isclose
    isfinite = _compare.isfinite
    isinf = _compare.isinf
    isnan = _compare.isnan
    le = _compare.le
    less = _compare.lt
    less_equal = le
    lt = less
    ne = _compare.ne
    not_equal = ne
    unique = _compare.unique
    def __eq__(self, other: Any) -> Tensor: ...  # type: ignore[override]
    def __ge__(self, other: Any) -> Tensor: ...
    def __gt__(self, other: Any) -> Tensor: ...
    def __le__(self, other: Any) -> Tensor: ...
    def __lt__(self, other: Any) -> Tensor: ...
    def __ne__(self, other: Any) -> Tensor: ...  # type: ignore[override]
    eq_ = eq
    ge_ = ge
    gt_ = greater
    le_ = le
    lt_ = less
    ne_ = ne
    greater_ = greater
    greater_equal_ = ge
    less_ = less
    less_equal_ = le
    not_equal_ = ne
    @property
    def imag(self) -> Tensor:
        """Return a view of the imaginary parts."""

    @imag.setter
    def imag(self, value: Any) -> None: ...
    @property
    def real(self) -> Tensor:
        """Return a view of the real parts; a real tensor itself."""

    @real.setter
    def real(self, value: Any) -> None: ...
    clone = _convert.clone
    def bool(self, memory_format: memory_format = ...) -> Tensor:
        """Return the tensor in torch.bool; itself if that is its dtype."""

    def byte(self, memory_format: memory_format = ...) -> Tensor:
        """Return the tensor in torch.uint8; itself if that is its dtype."""

    def char(self, memory_format: memory_format = ...) -> Tensor:
        """Return the tensor in torch.int8; itself if that is its dtype."""

    def short(self, memory_format: memory_format = ...) -> Tensor:
        """Return the tensor in torch.int16; itself if that is its dtype."""

    def int(self, memory_format: memory_format = ...) -> Tensor:
        """Return the tensor in torch.int32; itself if that is its dtype."""

    def long(self, memory_format: memory_format = ...) -> Tensor:
        """Return the tensor in torch.int64; itself if that is its dtype."""

    def half(self, memory_format: memory_format = ...) -> Tensor:
        """Return the tensor in torch.float16; itself if that is its dtype."""

    def float(self, memory_format: memory_format = ...) -> Tensor:
        """Return the tensor in torch.float32; itself if that is its dtype."""

    def double(self, memory_format: memory_format = ...) -> Tensor:
        """Return the tensor in torch.float64; itself if that is its dtype."""

    def cfloat(self, memory_format: memory_format = ...) -> Tensor:
        """Return the tensor in torch.complex64; itself if that is its dtype."""

    def cdouble(self, memory_format: memory_format = ...) -> Tensor:
        """Return the tensor in torch.complex128; itself if that is its dtype."""

    def bfloat16(self, memory_format: memory_format = ...) -> Tensor:
        """Return the tensor in torch.bfloat16; itself if that is its dtype."""

    contiguous = _convert.contiguous
    copy_ = _convert.copy_
    cpu = _convert.cpu
    cuda = _convert.cuda
    detach_ = detach
    fill_ = _convert.fill_
    requires_grad_ = _convert.requires_grad_
    to = _convert.to
    type_as = _convert.type_as
    zero_ = _convert.zero_
    new_empty = _convert.new_empty
    new_full = _convert.new_full
    new_ones = _convert.new_ones
    new_tensor = _convert.new_tensor
    new_zeros = _convert.new_zeros
    dist = _distance.dist
    renorm = _distance.renorm
    renorm_ = renorm
    abs = _elementwise.abs
    absolute = abs
    def acos(self) -> Tensor:
        """Return the angle whose cosine each element is, in radians."""

    arccos = acos
    def arcsin(self) -> Tensor:
        """Return the angle whose sine each element is, in radians."""

    def arctan(self) -> Tensor:
        """Return the angle whose tangent each element is, in radians."""

    arctan2 = _elementwise.atan2
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

    def log(self) -> Tensor:
        """Return the natural logarithm of each element."""

    def log1p(self) -> Tensor:
        """Return log(1 + x) of each element x, accurate near 0."""

    def log2(self) -> Tensor:
        """Return the logarithm to base 2 of each element."""

    def log10(self) -> Tensor:
        """Return the logarithm to base 10 of each element."""

    pow = _elementwise.pow
    reciprocal = _elementwise.reciprocal
    def rsqrt(self) -> Tensor:
        """Return 1 over the square root of each element."""

    sgn = _elementwise.sgn
    def sigmoid(self) -> Tensor:
        """Return 1 / (1 + exp(-x)) of each element x."""

    sign = _elementwise.sign
    def sin(self) -> Tensor:
        """Return the sine of each element, an angle in radians."""

    def sinh(self) -> Tensor:
        """Return the hyperbolic sine of each element."""

    def sqrt(self) -> Tensor:
        """Return the square root of each element, NaN of negative ones."""

    square = _elementwise.square
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
    asin_ = arcsin
    atan_ = arctan
    atan2_ = arctan2
    cos_ = cos
    cosh_ = cosh
    erf_ = erf
    exp_ = exp
    exp2_ = exp2
    expm1_ = expm1
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
    absolute_ = abs
    arccos_ = acos
    arcsin_ = arcsin
    arctan_ = arctan
    arctan2_ = arctan2
    conj_physical = _floats.conj_physical
    copysign = _floats.copysign
    def fix(self) -> Tensor:
        """Return each element without its fraction."""

    float_power = _floats.float_power
    frexp = _floats.frexp
    gcd = _floats.gcd
    heaviside = _floats.heaviside
    is_conj = _floats.is_conj
    is_neg = _floats.is_neg
    is_same_size = _floats.is_same_size
    isneginf = _floats.isneginf
    isposinf = _floats.isposinf
    isreal = _floats.isreal
    lcm = _floats.lcm
    ldexp = _floats.ldexp
    logaddexp2 = _floats.logaddexp2
    nextafter = _floats.nextafter
    resolve_conj = _floats.resolve_conj
    resolve_neg = _floats.resolve_neg
    signbit = _floats.signbit
    copysign_ = copysign
    float_power_ = float_power
    gcd_ = gcd
    heaviside_ = heaviside
    lcm_ = lcm
    ldexp_ = ldexp
    nextafter_ = nextafter
    conj_physical_ = conj_physical
    fix_ = fix
    def digamma(self) -> Tensor:
        """Return the derivative of `lgamma` at each element."""

    igamma = _gamma.igamma
    igammac = _gamma.igammac
    def lgamma(self) -> Tensor:
        """Return the logarithm of the gamma function's absolute value, of each element."""

    mvlgamma = _gamma.mvlgamma
    digamma_ = digamma
    igamma_ = igamma
    igammac_ = igammac
    lgamma_ = lgamma
    mvlgamma_ = mvlgamma
    polygamma = _gamma._polygamma_of
    polygamma_ = polygamma
    index_add = _index_along.index_add
    index_copy = _index_along.index_copy
    index_fill = _index_along.index_fill
    index_select = _index_along.index_select
    repeat_interleave = _index_along.repeat_interleave
    index_add_ = index_add
    index_copy_ = index_copy
    index_fill_ = index_fill
    argwhere = _indexing.argwhere
    index_put = _indexing.index_put
    nonzero = _indexing.nonzero
    index_put_ = index_put
    def __getitem__(self, key: Any) -> Tensor: ...
    def __setitem__(self, key: Any, value: Any) -> None: ...
    logcumsumexp = _integration.logcumsumexp
    bitwise_and = _logic.bitwise_and
    bitwise_left_shift = _logic.bitwise_left_shift
    bitwise_not = _logic.bitwise_not
    bitwise_or = _logic.bitwise_or
    bitwise_right_shift = _logic.bitwise_right_shift
    bitwise_xor = _logic.bitwise_xor
    logical_and = _logic.logical_and
    logical_not = _logic.logical_not
    logical_or = _logic.logical_or
    logical_xor = _logic.logical_xor
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
    masked_fill = _masked.masked_fill
    masked_scatter = _masked.masked_scatter
    masked_select = _masked.masked_select
    masked_fill_ = masked_fill
    masked_scatter_ = masked_scatter
    addmm = _matmul.addmm
    addmv = _matmul.addmv
    baddbmm = _matmul.baddbmm
    bmm = _matmul.bmm
    dot = _matmul.dot
    ger = _matmul.outer
    inner = _matmul.inner
    matmul = _matmul.matmul
    mm = _matmul.mm
    mv = _matmul.mv
    outer = ger
    vdot = _matmul.vdot
    addmm_ = addmm
    addmv_ = addmv
    baddbmm_ = baddbmm
    def __matmul__(self, y: Any) -> Tensor: ...
    def __rmatmul__(self, y: Any) -> Tensor: ...
    cholesky = _matrices.cholesky
    cholesky_inverse = _matrices.cholesky_inverse
    cholesky_solve = _matrices.cholesky_solve
    det = _matrices.det
    inverse = _matrices.inverse
    logdet = _matrices.logdet
    lu = _matrices.lu
    lu_solve = _matrices.lu_solve
    matrix_exp = _matrices.matrix_exp
    matrix_power = _matrices.matrix_power
    pinverse = _matrices.pinverse
    qr = _matrices.qr
    slogdet = _matrices.slogdet
    svd = _matrices.svd
    triangular_solve = _matrices.triangular_solve
    narrow_copy = _memory.narrow_copy
    split_with_sizes = _memory.split_with_sizes
    unsafe_chunk = _memory.unsafe_chunk
    unsafe_split = _memory.unsafe_split
    unsafe_split_with_sizes = _memory.unsafe_split_with_sizes
    @staticmethod
    def _make_subclass(
        cls: builtins.type, data: Tensor, require_grad: builtins.bool = False
    ) -> Tensor: ...
    apply_ = _memory.apply_
    as_subclass = _memory.as_subclass
    fill_diagonal_ = _memory.fill_diagonal_
    is_set_to = _memory.is_set_to
    @property
    def layout(self) -> Any:
        """Return how the elements lie in memory: strided, always."""

    map2_ = _memory.map2_
    map_ = _memory.map_
    new = _memory.new
    new_empty_strided = _memory.new_empty_strided
    pin_memory = _memory.pin_memory
    resize_ = _memory.resize_
    resize_as_ = _memory.resize_as_
    set_ = _memory.set_
    storage = _memory.storage
    to_dense = _memory.to_dense
    def to_mkldnn(self, *args: Any, **kwargs: Any) -> Tensor:
        """Raise NotImplementedError: there are no MKL-DNN tensors."""

    untyped_storage = _memory.untyped_storage
    is_distributed = _memory._false
    is_pinned = is_distributed
    is_coalesced = is_distributed
    @property
    def is_ipu(self, *args: Any) -> builtins.bool:
        """Return False: tensors are dense and on the CPU."""

    @property
    def is_mkldnn(self, *args: Any) -> builtins.bool:
        """Return False: tensors are dense and on the CPU."""

    @property
    def is_mps(self, *args: Any) -> builtins.bool:
        """Return False: tensors are dense and on the CPU."""

    @property
    def is_mtia(self, *args: Any) -> builtins.bool:
        """Return False: tensors are dense and on the CPU."""

    @property
    def is_nested(self, *args: Any) -> builtins.bool:
        """Return False: tensors are dense and on the CPU."""

    @property
    def is_quantized(self, *args: Any) -> builtins.bool:
        """Return False: tensors are dense and on the CPU."""

    @property
    def is_sparse_csr(self, *args: Any) -> builtins.bool:
        """Return False: tensors are dense and on the CPU."""

    @property
    def is_vulkan(self, *args: Any) -> builtins.bool:
        """Return False: tensors are dense and on the CPU."""

    @property
    def is_xla(self, *args: Any) -> builtins.bool:
        """Return False: tensors are dense and on the CPU."""

    @property
    def is_xpu(self, *args: Any) -> builtins.bool:
        """Return False: tensors are dense and on the CPU."""

    def coalesce(self, *args: Any, **kwargs: Any) -> Tensor:
        """Raise NotImplementedError: there are no sparse tensors."""

    indices = coalesce
    values = coalesce
    sparse_mask = coalesce
    to_sparse = coalesce
    to_sparse_coo = coalesce
    to_sparse_bsr = coalesce
    to_sparse_bsc = coalesce
    to_sparse_csc = coalesce
    to_sparse_csr = coalesce
    bincount = _numerics.bincount
    diff = _numerics.diff
    trace = _numerics.trace
    amax = _order.amax
    amin = _order.amin
    aminmax = _order.aminmax
    argmax = _order.argmax
    argmin = _order.argmin
    argsort = _order.argsort
    @overload
    def max(self, dim: builtins.int, keepdim: builtins.bool = False) -> Picked: ...
    @overload
    def max(self, dim: None = None) -> Tensor: ...
    @overload
    def max(self, dim: Tensor) -> Tensor: ...
    median = _order.median
    @overload
    def min(self, dim: builtins.int, keepdim: builtins.bool = False) -> Picked: ...
    @overload
    def min(self, dim: None = None) -> Tensor: ...
    @overload
    def min(self, dim: Tensor) -> Tensor: ...
    sort = _order.sort
    topk = _order.topk
    clamp = _piecewise.clamp
    clamp_max = _piecewise.clamp_max
    clamp_min = _piecewise.clamp_min
    clip = clamp
    fmax = _piecewise.fmax
    fmin = _piecewise.fmin
    maximum = _piecewise.maximum
    minimum = _piecewise.minimum
    nan_to_num = _piecewise.nan_to_num
    where = _piecewise._where
    clip_ = clamp
    clamp_ = clamp
    clamp_max_ = clamp_max
    clamp_min_ = clamp_min
    nan_to_num_ = nan_to_num
    addbmm = _products.addbmm
    addr = _products.addr
    corrcoef = _products.corrcoef
    cov = _products.cov
    cross = _products.cross
    diagflat = _products.diagflat
    kron = _products.kron
    addbmm_ = addbmm
    addr_ = addr
    cummax = _ranks.cummax
    cummin = _ranks.cummin
    kthvalue = _ranks.kthvalue
    mode = _ranks.mode
    msort = _ranks.msort
    nanmedian = _ranks.nanmedian
    nanquantile = _ranks.nanquantile
    quantile = _ranks.quantile
    flip = _rearrange.flip
    fliplr = _rearrange.fliplr
    flipud = _rearrange.flipud
    roll = _rearrange.roll
    rot90 = _rearrange.rot90
    tile = _rearrange.tile
    def __reversed__(self) -> Tensor: ...
    repeat = _rearrange.repeat
    all = _reduce.all
    any = _reduce.any
    count_nonzero = _reduce.count_nonzero
    cumprod = _reduce.cumprod
    cumsum = _reduce.cumsum
    logsumexp = _reduce.logsumexp
    mean = _reduce.mean
    nanmean = _reduce.nanmean
    nansum = _reduce.nansum
    norm = _reduce.norm
    prod = _reduce.prod
    sum = _reduce.sum
    cumprod_ = cumprod
    cumsum_ = cumsum
    def ceil(self) -> Tensor:
        """Return the smallest integer that is not below each element."""

    def floor(self) -> Tensor:
        """Return the largest integer that is not above each element."""

    floor_divide = _rounding.floor_divide
    fmod = _rounding.fmod
    frac = _rounding.frac
    remainder = _rounding.remainder
    round = _rounding.round
    trunc = fix
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
    trunc_ = fix
    bernoulli = _random_sampling.bernoulli
    bernoulli_ = _sampling.bernoulli_
    cauchy_ = _sampling.cauchy_
    exponential_ = _sampling.exponential_
    geometric_ = _sampling.geometric_
    log_normal_ = _sampling.log_normal_
    multinomial = _random_sampling.multinomial
    normal_ = _sampling.normal_
    random_ = _sampling.random_
    uniform_ = _sampling.uniform_
    gather = _scatter.gather
    scatter = _scatter.scatter
    scatter_add = _scatter.scatter_add
    take = _scatter.take
    take_along_dim = _scatter.take_along_dim
    scatter_ = scatter
    scatter_add_ = scatter_add
    as_strided_scatter = _scatter_reduce.as_strided_scatter
    diagonal_scatter = _scatter_reduce.diagonal_scatter
    index_reduce = _scatter_reduce.index_reduce
    put = _scatter_reduce.put
    scatter_reduce = _scatter_reduce.scatter_reduce
    select_scatter = _scatter_reduce.select_scatter
    slice_scatter = _scatter_reduce.slice_scatter
    index_reduce_ = index_reduce
    put_ = put
    scatter_reduce_ = scatter_reduce
    adjoint = _shape.adjoint
    flatten = _shape.flatten
    moveaxis = _shape.movedim
    movedim = moveaxis
    permute = _shape.permute
    ravel = _shape.ravel
    reshape = _shape.reshape
    squeeze = _shape.squeeze
    swapaxes = _shape.swapaxes
    swapdims = _shape.transpose
    t = _shape.t
    transpose = swapdims
    unflatten = _shape.unflatten
    unsqueeze = _shape.unsqueeze
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

    reshape_as = _shape.reshape_as
    view = _shape.view
    view_as = _shape.view_as
    diag = _slicing.diag
    diag_embed = _slicing.diag_embed
    diagonal = _slicing.diagonal
    narrow = _slicing.narrow
    select = _slicing.select
    tril = _slicing.tril
    triu = _slicing.triu
    unfold = _slicing.windows
    tril_ = tril
    triu_ = triu
    def log_softmax(self, dim: builtins.int | None = None, dtype: Any = None) -> Tensor:
        """Return the logarithm of `softmax`, which has the same arguments, without its underflow."""

    def softmax(self, dim: builtins.int | None = None, dtype: Any = None) -> Tensor:
        """Return exp(x) over the sum of exp(x) along an axis."""

    def erfc(self) -> Tensor:
        """Return 1 - erf(x) of each element x, accurate where that is small."""

    erfinv = _special.erfinv
    i0 = _special.i0
    logaddexp = _special.logaddexp
    logit = _special.logit
    xlogy = _special.xlogy
    erfc_ = erfc
    erfinv_ = erfinv
    i0_ = i0
    logit_ = logit
    xlogy_ = xlogy
    chunk = _splitting.chunk
    dsplit = _splitting.dsplit
    hsplit = _splitting.hsplit
    split = _splitting._split
    tensor_split = _splitting.tensor_split
    unbind = _splitting.unbind
    vsplit = _splitting.vsplit
    def __iter__(self) -> Iterator[Tensor]: ...
    as_strided = _strided.as_strided
    as_strided_ = as_strided
    squeeze_ = squeeze
    swapaxes_ = swapaxes
    t_ = t
    transpose_ = swapdims
    unsqueeze_ = unsqueeze
    swapdims_ = swapdims
    addcdiv = _ternary.addcdiv
    addcmul = _ternary.addcmul
    lerp = _ternary.lerp
    addcdiv_ = addcdiv
    addcmul_ = addcmul
    lerp_ = lerp
    std = _variance.std
    var = _variance.var
    def __dir__(self) -> Iterable[str]: ...

def wrap(array: np.ndarray, cls: builtins.type = ...) -> Tensor:
    """Return a new leaf tensor around an ndarray, sharing its memory."""

def complete() -> None:
    """Import the functions, which become methods of Tensor: nobody may have done so yet."""

def _rebuild(
    cls: builtins.type, array: Any, requires_grad: builtins.bool, attributes: dict
) -> Tensor: ...
