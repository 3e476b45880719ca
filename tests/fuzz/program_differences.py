"""Differences from PyTorch that random programs may show, each with its reason.

Names that differ are in `convcore.compat.differences`; the rest is rounding, order, or more than
PyTorch has.
"""

from __future__ import annotations

import re

IN_PLACE = r"\w_\(|__setitem__|inplace=True"  # a line that changes a tensor
# (a line of the program, what differs, why that is as it should be)
_KNOWN = (
    # More than PyTorch has
    (r"prelu\(", r"does not raise .*Type promoting", "more dtypes"),
    (r"kl_div\(", r"does not raise .*(Complex|Integral) inputs", "more dtypes"),
    (r"embedding\(", r"does not raise .*complex dtype", "more dtypes"),
    (r"topk\(", r"does not raise .*bool dtypes", "more dtypes"),
    (r"relu(_|6)?\(|hardtanh\(", r"does not raise .*clamp is not supported", "more dtypes"),
    (r"abs_\(", r"does not raise .*In-place abs", "works here"),
    (r"(slice|select)_scatter\(", r"does not raise .*(automatic differentiation|dtype)", "works"),
    (r"alpha=|_loss\(", r"does not raise .*the `-` operator", "bools are numbers there"),
    (r"_loss\(", r"does not raise .*Found dtype", "of two dtypes"),
    (r"", r"does not raise .*Autograd not support dtype", "integers need none"),
    (r"nan_to_num\(", r"does not raise .*support automatic differentiation", "works here"),
    (r"trapezoid", r"does not raise .*bool", "bools are numbers there"),
    (r"lib\.dist\(", r"does not raise .*isFloatingType", "works here"),
    (r"True \*\*", r"does not raise .*INTERNAL ASSERT", "works here"),
    (r"\[0, 0\]|\[0, -1\]", r"does not raise IndexError.*dimension with size 0", "takes nothing"),
    (r"huber_loss\(", r"does not raise .*can't be cast", "of two dtypes"),
    (r"lib\.dist\(", r"does not raise .*have an identity", "the least of nothing is infinite"),
    (r"lib\.dist\(.*, 0\)", r"does not raise .*Expected a proper Tensor", "works here"),
    (
        r"-[\d.]+ [<>=!]=? v|v\d+ [<>=!]=? -|lt_\(-",
        r"value (True|False|0|1)",
        "uint8 is not negative",
    ),
    (r"cosine_similarity\(", r"does not raise .*expected common dtype", "complex too"),
    (r"batch_norm\(", r"does not raise .*(INTERNAL ASSERT|dtype|type|out of range)", "more dtypes"),
    (r"cdist\(", r"does not raise .*(floating-point dtypes|scalar type)", "more dtypes"),
    (r"lerp|lib\.cross\(", r"does not raise .*(scalar type|expected dtype)", "more dtypes"),
    (r"cross_entropy", r"does not raise .*automatic differentiation", "complex numbers"),
    (r"lerp", r"does not raise .*operator, with (two|a) bool", "bools are numbers there"),
    (r"lib\.where", r"does not raise .*isFloatingType", "works here"),
    (r"isin", r"does not raise .*view size is not compatible", "PyTorch asks for a view"),
    (r"instance_norm", r"value", "seen by as_strided, whose strides are not promised"),
    (
        r"_norm\(",
        r"value -?[\d.]+e-0[4-9].*, not -?[\d.]+e-0[4-9]",
        "equal numbers: their rounding errors over the root of eps",
    ),
    (r"addcdiv", r"value \(nan\+nanj\) .*inf", "a complex number divided by zero"),
    (r"/", r"value -?inf .*, not -?inf", "by a zero of another sign"),
    (r"avg_pool1d", r"does not raise .*non-zero size for non-batch", "of no channels, too"),
    (r"det\(", r"\.grad: \(requires_grad, is_leaf\)", "of one element: a constant there"),
    (r"requires_grad_", r"log of the hooks", "of a root that no leaf is asked of"),
    (r"avg_pool2d", r"does not raise .*non-zero size for non-batch", "of no channels, too"),
    (r"div\(", r"value -?inf .*, not -?inf", "by a zero of another sign"),
    (r"fmod\(|remainder\(", r"\.grad: \(requires_grad", "of a whole quotient, a constant"),
    (r"(std|var)_mean\(", r"value -?inf .*, not nan", "the mean of infinities, as of mean"),
    (r"addc(div|mul)\(", r"gradient", "PyTorch multiplies value and unsigned, which wrap around"),
    (r"argsort\(", r"value \d+ .*, not \d+$", "of equal values any order"),
    (r"'bicubic'", r"value .*, not nan", "a NaN whose weight is 0 is left out"),
    (r"block_diag", r"gradient", "PyTorch loses one beside an empty row"),
    (r"", r"does not raise .*INTERNAL ASSERT FAILED.*variable\.cpp", "a fault of PyTorch's"),
    (r"layer_norm\(\w+, \(1,\)", r"gradient.*value -?0\.0 .*e-0[4-9]", "of one number: zero"),
    (r"median\(", r"NotImplementedError .*, not IndexError", "another order"),
    (r"margin_ranking_loss", r"raises RuntimeError.*mean", "floating point only"),
    (r"fmod_", r"at the end: value", "an integer divided by zero is refused before it is written"),
    (r"kl_div\(", r"gradient.*, not nan", "0 log 0 has the gradient 0"),
    (r"index_add", r"does not raise .*(scalar type|shape|same dtype)", "other shapes, and dtypes"),
    (r"layer_norm", r"does not raise .*(mixed dtype|scalar type)", "more dtypes"),
    (r"argwhere", r"\(False, True\), not \(True, False\)", "integers require no grad"),
    (
        r"__setitem__",
        r"at the end: .*\(False, True\), not \(True, False\)",
        "integers require no grad",
    ),
    (r"alpha=(True|1\.0)", r"does not raise", "True and 1.0 are 1"),
    (IN_PLACE, r"does not raise .*(single memory location|modified by an inplace)", "values kept"),
    # Two faults in one call, of which either may be named
    (r"sort\(", r"RuntimeError .*complex.*, not IndexError", "another order"),
    (r"index_put_|__setitem__|embedding\(", r"RuntimeError.*, not IndexError", "another order"),
    (r"__setitem__", r"IndexError.*, not RuntimeError .*single memory", "another order"),
    (r"index_fill_", r"IndexError.*, not .*(setStorage|leaf Variable)", "another order"),
    (r"embedding\(", r"IndexError.*, not .*INDICES", "another order"),
    (r"index_add", r"RuntimeError .*, not IndexError", "another order"),
    (r"index_put_", r"IndexError.*, not RuntimeError .*single memory", "another order"),
    (r"amin|amax", r"NotImplementedError .*, not IndexError", "another order"),
    (r"baddbmm", r"RuntimeError .*, not IndexError", "another order"),
    (r"index_select", r"IndexError.*, not .*dim should be positive", "another order"),
    (r"batch_norm", r"(Value|Runtime)Error.*, not IndexError", "another order"),
    (r"grid_sample", r"RuntimeError.*, not IndexError", "another order"),
    (r"avg_pool|softmax", r"NotImplementedError .*Error \(.*, not ", "another order"),
    (
        r"register_hook",
        r"does not raise (Attribute|Type)Error.*NoneType",
        "no hook is called with None",
    ),
    (r"cross_entropy", r"ValueError.*, not (Runtime|Index)Error", "another order"),
    # Which tensors are kept for the backward pass
    (IN_PLACE, r"raises RuntimeError: one of the variables needed for gradient", "it is kept"),
    # Named in the table of differences
    (r"nextafter", r"derivative for|gradient", "no derivative"),
    (r"//|floor_divide", r"gradient", "a gradient of zeros, not one that raises"),
    (r"\.lt_\(", r"requires_grad", "leaves the graph"),
    (r"(huber|soft_margin)_loss", r"dtype", "the common dtype, as of other losses"),
    (r"einsum", r"raises .*expected scalar type", "one dtype, whatever the equation"),
    (r"detach_\(", r"\(requires_grad, is_leaf\)", "views of before are detached too"),
    (r"detach_\(", r"does not raise .*detached in-place", "values kept"),
    (r"detach_\(", r"(raises|does not raise) .*detach views", "other results are views"),
    (r"squeeze_\(", r"raises .*more than one element", "any change of what is expanded"),
)
_KNOWN += (
    (r"logaddexp\(|Hardtanh|silu", r"raises NotImplementedError", "real numbers only"),
    (r"hardtanh|relu6", r"raises NotImplementedError", "floating point only"),
    (r"grid_sample", r"second gradient", "the gradient has no gradient"),
    (r"\.mH|conj", r"value|detach views|view of a leaf|is_leaf|unresolved", "it is a copy"),
    (r"pow|\*\*", r"value \(1\+0j\) .*, not \(nan\+nanj\)", "0 ** 0 is 1"),
    (r"instance_norm", r"raises .*that has been detached in-place", "it saves its input itself"),
    # Where there is no derivative
    (r"copysign", r"second gradient.*, not nan", "of zero: none, and not 0 / 0"),
    (r"sinc\(", r"second gradient.*, not (nan|-?0\.0$)", "-(pi ** 2) / 3 at 0"),
    (r"kl_div\(", r"gradient \d: value nan", "of a negative probability, also beside a zero"),
    (r"pow|\*\*", r"gradient.*not \(?nan", "0 ** x: zero, where PyTorch has NaN"),
    (r"lib.dist\(|vector_norm|norm\(|cdist|pairwise", r"second gradient", "at a distance of zero"),
    (r"(un)?squeeze_\(", r"\.grad: size", "of the tensor as it is now"),
    (r"_version", r"\._version\)?: \d+, not \d+$", "how often it was written while it was made"),
    (r"requires_grad_\(", r"requires_grad", "views made before are left as they are"),
    (r"contiguous", r"requires_grad", "a tensor itself, or a view of it"),
    (r"normalize|cosine_similarity", r"second gradient", "at a length of zero"),
    (
        r"__setitem__.*\[\[?0\]?, \[?(0|-1)\]",
        r"gradient",
        "of several values at a place, any may stay",
    ),
    # Where values lie
    (r"\.unfold\(.*, 2, 1\)", r"raises .*more than one element", "windows overlap"),
    (r"as_strided", r"raises ", "only what the tensor itself has"),
    (r"block_diag", r"dtype", "numbers are matrices, and promote as such"),
    (r"transpose_|\bt_", r"raises .*more than one element", "any change of what is expanded"),
    (r"cumsum_", r"raises .*can't be cast", "of numbers too"),
    (r"margin_loss", r"\.grad: \(requires_grad, is_leaf\)", "a second one, where PyTorch has none"),
    (r"retain_grad", r"\.grad: dtype", "of an in-place power of another dtype"),
    (r"\.mv\(", r"not IndexError", "another order"),
    (r"einsum|matmul|@|bmm", r"strides", "a product, of which no strides are promised"),
    (r"expand|broadcast|__setitem__|index_fill_", r"raises .*more than one element", "any write"),
    (r"\.m[HT]", r"raises .*Got 0-D", "a warning in PyTorch, to be an error"),
    (r"binary_cross_entropy_with_logits", r"dtype", "the common dtype, as of other losses"),
    (r"(avg|lp)_pool|F\.unfold", r", not IndexError .*Dimension", "another order"),
    (r"linalg\.solve", r"at the end: value", "it lies by rows, and contiguous() is itself"),
    (r"fmod_\(v", r"value .*, not nan", "by a part of itself, as it was before"),
    (r"triplet_margin_loss", r"value (True|False)", "it is 1 but for rounding"),
    (r"linalg\.(solve|inv)", r"raises LinAlgError .*singular", "it is, but for rounding"),
    (r"index_fill_", r"does not raise .*: a leaf Variable", "a view of before"),
    (r"\.std(_mean)?\(", r"value .*, not inf", "a square is beyond the dtype, its root is not"),
    (
        r"avg_pool|local_response_norm",
        r"raises NotImplementedError .*'(Long|Int)'",
        "floating point only",
    ),
    (r"adaptive_avg_pool", r"not ValueError", "RuntimeError, as for other ranks"),
    # Empty tensors
    (r"addcmul", r"dtype", "the dtype of the numbers too"),
    (r"median", r"requires_grad", "nothing has no median"),
    (r"scatter_reduce", r"raises IndexError", "an empty index of another rank"),
)
_KNOWN += (
    (
        r"tensordot\(|einsum\(",
        r"dtype (b?float16, not float32|uint8, not int64)",
        "of one element, as of several",
    ),
    (r"addcdiv", r"does not raise .*can't be cast", "works here"),
    (r"attention", r"raises .*that has been detached in-place", "it saves its input itself"),
    (r"nanmean|nansum|lib\.(min|max)\(", r"not IndexError", "another order"),
    (r"embedding\(", r"IndexError.*, not .*dim should be positive", "another order"),
    (r"index_fill_", r"IndexError.*, not RuntimeError .*is a view", "another order"),
    (r"requires_grad_", r"does not raise .*view was created in no_grad", "views of before stay"),
    (r"view_as_real", r"does not raise .*dimension with stride 1", "works here"),
    (r"atan2", r"gradient", "PyTorch squares bytes"),
    (r"smooth_l1_loss|huber_loss", r"second gradient", "at the kink, where there is none"),
    (r"F\.unfold", r"raises NotImplementedError .*'Bool'", "numbers only"),
)
# Of operands or results without elements alone: here they are checked like others
_KNOWN_EMPTY = (
    (r"", r"raises NotImplementedError .*not implemented for", "dtypes"),
    (
        r"conv|bmm|matmul|@|copy_|repeat|grid_sample|linear",
        r"raises RuntimeError.*(scalar type|dtype)",
        "dtypes",
    ),
    (r"index_put|__setitem__", r"raises RuntimeError.*dtypes match", "dtypes"),
    (r"attention", r"raises \w+Error.*(size|shapes)", "sizes"),
    (r"conv[123]d", r"size|dtype|does not raise", "PyTorch confuses sizes of 0"),
)
KNOWN_EMPTY = [(re.compile(line), re.compile(what), why) for line, what, why in _KNOWN_EMPTY]
KNOWN = [(re.compile(line), re.compile(what), why) for line, what, why in _KNOWN]

_TURNED = r"leaf\(\d*[05],|\.m?T\b|transpose|permute|swapaxes|movedim"  # see `programs.leaf`
# (what is found in the whole program, its lines joined by semicolons; what differs; why)
_KNOWN_TOGETHER = (
    (
        rf"({_TURNED}).*batch_norm|batch_norm.*({_TURNED})",
        r"^gradient \d: value",
        "PyTorch takes gradients and turned elements in two orders",
    ),
    (r"sinc\(.*sinc\(", r"second gradient \d: value", "-(pi ** 2) / 3 at 0"),
    (r"requires_grad_\(.*register_hook", r"doesn't require gradient", "views of before stay"),
    (
        r"(split|chunk)\(.*detach_\(",
        r"raises .*of Split is a view",
        "views made before are detached too",
    ),
    (
        r"register_hook.*\b(t|transpose|(un)?squeeze)_\(|avg_pool1d\(.*register_hook",
        r"^gradient \d: value|log of the hooks",
        "a hook of a view stays with what the view was",
    ),
    (r"(interpolate|_loss)\(.*unique\(", r": size", "of numbers that are equal but for rounding"),
    (r"interpolate\(.*//", r"value -?inf .*, not -?[\d.]+e\+1\d$", "of 0 but for rounding"),
    (r"interpolate\(.*reciprocal", r"value -?inf .*, not -?\d{6,}\.", "of 0 but for rounding"),
    (r"batch_norm\(.*logical_", r"value (True|False)", "of 0 but for rounding"),
    (r"(add|sub)\(.*alpha=.*//", r"value -?\d+\.0 ", "whole but for rounding"),
    (r"_norm\(.*contiguous\(", r"value", "a copy, or itself: strides are not promised"),
    (r"contiguous\(.*_\(", r"at the end: size", "of no elements, a copy or itself"),
    (r"linalg\.inv\(.*contiguous\(", r"at the end: value", "a copy, or itself: strides vary"),
    (r"elu\(.*inplace=True.*register_hook", r"second gradient", "PyTorch counts the hook twice"),
    (
        r"expand\(.*register_hook.*\]\.\w+_\(",
        r"log of the hooks",
        "PyTorch forgets the hook of a view whose part is changed",
    ),
    (r"linalg\.inv\(.*argwhere\(", r": (size|value)", "of 0 but for rounding"),
    (r"instance_norm\(.*(nonzero|unique)\(", r": (size|value)", "of 0 but for rounding"),
    (r"attention\(.*kthvalue\(", r"\.grad: value|^gradient", "of equal values any is taken"),
    (
        r"squeeze\(.*__setitem__",
        r"does not raise .*a leaf Variable",
        "PyTorch takes a view for a leaf until it is looked at",
    ),
    (r"split\(.*addcmul_\(", r"value", "by a part of itself, as it was before"),
    (r"expand\(.*median\(", r"value", "PyTorch reads beyond what is expanded"),
    (r"conv[123]d\(", r"raises IndexError.*Dimension out of", "PyTorch confuses sizes of 0"),
    (r"kl_div\(.*searchsorted\(", r"value \d", "NaN is the largest, as for sort"),
    (
        r"(copysign|erfinv|polar)\(.*register_hook",
        r"second gradient",
        "a hook of a result, of which PyTorch's gradient is made, or is not",
    ),
    (
        r"(flatten|view|reshape)\(.*register_hook.*\w_\(\)",
        r"second gradient",
        "PyTorch saves a copy of what the view was, whose hooks it calls then alone",
    ),
    (r"'u?int\d+'.*__setitem__", r"does not raise .*a leaf Variable", "integers need no gradient"),
    (r"unfold\(.*(\w_\(|inplace=True)", r"value", "windows overlap: each is as it was before"),
    (r"softm(in|ax)\(.*topk\(", r"^gradient \d: value", "of equal values any is taken"),
    (r"group_norm\(.*(floor|ceil|trunc)\(", r"value -?\d\.0 ", "of 0 but for rounding"),
    (r"unfold\(.*topk\(", r"\.grad: value|^gradient \d: value", "of equal values any is taken"),
    (r"gelu\(.*(eq|ne)\(", r"value (True|False)", "PyTorch's cancels"),
    (
        r"cross\(.*((all|any|unique|addcdiv|count_nonzero)\(|[=!]= )",
        r"value \(?(True|False|inf|\d)|: size",
        "of 0 but for rounding",
    ),
    (r"logaddexp\(.*[=!]= ", r"value (True|False)", "equal but for rounding"),
)
KNOWN_TOGETHER = [(re.compile(a), re.compile(b), why) for a, b, why in _KNOWN_TOGETHER]


def reason(
    lines: list[str], what: str, program: list[str] | None = None, of_nothing: bool = False
) -> str:
    """Return why a program differs as it does, if that is known; or ''.

    lines : those that the difference may come from
    program : all of them
    of_nothing : whether a tensor without elements is read or made there
    """
    for found, difference, why in KNOWN_TOGETHER:
        if difference.search(what) and found.search("; ".join(program or lines)):
            return why
    for line, difference, why in (*KNOWN, *(KNOWN_EMPTY if of_nothing else ())):
        if difference.search(what) and any(line.search(one) for one in lines):
            return why
    return ""
