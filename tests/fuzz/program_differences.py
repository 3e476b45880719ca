"""Differences from PyTorch that random programs may show, each with its reason.

Names that differ are in `convcore.compat.differences`; the rest is rounding, order, or more than
PyTorch has.
"""

from __future__ import annotations

import re

# (a line of the program, what differs, why that is as it should be)
_KNOWN = (
    # More than PyTorch has
    (r"", r"does not raise .*(does not support|not supported|[Nn]ot implemented)", "works here"),
    (r"", r"does not raise .*(Found dtype|expected common dtype|INTERNAL ASSERT)", "works here"),
    (r"kl_div|prelu|slice_scatter|batch_norm", r"does not raise", "more dtypes"),
    (
        r"cross_entropy|lerp|cdist|lib.cross|index_put_|__setitem__",
        r"does not raise",
        "more dtypes",
    ),
    (
        r"lib.where|scatter_add|lib.kron|isin",
        r"does not raise",
        "PyTorch fails at what it should do",
    ),
    (
        r"conv1d|bmm|copy_|repeat|index_put|setitem",
        r"raises RuntimeError",
        "checked when empty too",
    ),
    (r"instance_norm", r"value", "seen by as_strided, whose strides are not promised"),
    (r"logcumsumexp", r"second gradient", "PyTorch has none of a number"),
    (r"soft_margin_loss", r"gradient", "PyTorch negates unsigned targets"),
    (r"ldexp", r"gradient", "PyTorch's has the integer power 2 ** -1 = 0"),
    (r"log_ndtr|ndtr", r"second gradient|count_nonzero", "PyTorch's cancels, or underflows"),
    (r"conv[123]d", r"size|does not raise", "PyTorch confuses sizes of 0"),
    (r"index_add|layer_norm", r"does not raise", "other shapes, and dtypes"),
    (r"argwhere|__setitem__", r"requires_grad", "integers require no grad"),
    (r"soft_margin_loss", r"does not raise", "a target may require grad, and broadcasts"),
    (r"alpha=True", r"does not raise", "True is 1"),
    (r"", r"does not raise .*(single memory location|modified by an inplace)", "values are kept"),
    (r"", r"does not raise .*isFloatingType", "works here"),
    (r"", r"raises NotImplementedError.*'Complex", "real numbers only"),
    # Two faults in one call, of which either may be named
    (r"index_put_|__setitem__|embedding\(", r"RuntimeError.*, not IndexError", "another order"),
    (r"", r"NotImplementedError RuntimeError \(.*, not ", "another order"),
    (r"register_hook", r"does not raise AttributeError", "no hook is called with None"),
    (r"cross_entropy", r"ValueError.*, not RuntimeError", "another order"),
    # Which tensors are kept for the backward pass
    (r"", r"raises RuntimeError: one of the variables needed for gradient", "keeps the tensor"),
    # Named in the table of differences
    (r"unique|heaviside|nextafter", r"requires_grad", "no gradient, not one that raises"),
    (r"//|floor_divide", r"gradient", "a gradient of zeros, not one that raises"),
    (r"\.lt_\(", r"requires_grad", "leaves the graph"),
    (r"huber_loss", r"dtype", "the common dtype, as of other losses"),
    (r"\.mT", r"raises .*Got 0-D", "a warning in PyTorch, to be an error"),
    (r"entr\(", r"gradient", "0 where the value is -inf"),
    (r"einsum", r"raises .*expected scalar type", "one dtype, whatever the equation"),
    (r"\.(t_|transpose_|squeeze_|unsqueeze_)\(", r"raises .*detach views", "is a view of itself"),
)
_KNOWN += (
    (r"logaddexp\(|logcumsumexp|Hardtanh", r"raises NotImplementedError", "real numbers only"),
    (r"hardtanh|relu6", r"raises NotImplementedError", "floating point only"),
    (r"grid_sample", r"second gradient", "the gradient has no gradient"),
    (r"\.mH|conj", r"value|detach views", "a conjugate is a copy"),
    # Where there is no derivative
    (r"pow|\*\*", r"second gradient.*not nan", "0 ** x: zero, where PyTorch has NaN"),
    (r"lib.dist\(|vector_norm|norm\(|cdist|pairwise", r"second gradient", "at a distance of zero"),
    (r"_version", r"", "how often a tensor was written while it was made"),
    (r"requires_grad_\(", r"requires_grad", "views made before are left as they are"),
    (r"cummin|cummax", r"raises NotImpl", "complex numbers have no order, nor has one of them"),
    (r"matrix_power", r"requires_grad", "the power 0 is no function of the matrix"),
    (r"broadcast_tensors|contiguous", r"requires_grad", "a tensor itself, or a view of it"),
    (r"add_\(.*alpha", r"raises .*can't be cast", "a bool times 2 is no bool"),
    (r"normalize|cosine_similarity", r"second gradient", "at a length of zero"),
    (r"__setitem__.*\[0, (0|-1)\]", r"gradient", "of several values at a place, any may stay"),
    # Where values lie
    (r"as_strided", r"raises ", "only what the tensor itself has"),
    (r"block_diag", r"dtype", "numbers are matrices, and promote as such"),
    (r"broadcast_tensors", r"size", "a tensor that is large enough is itself"),
    (r"transpose_|\bt_", r"raises .*more than one element", "any change of what is expanded"),
    (r"cumsum_", r"raises .*can't be cast", "of numbers too"),
    (r"retain_grad", r"\.grad: dtype", "of an in-place power of another dtype"),
    (r"\.mv\(", r"not IndexError", "another order"),
    (r"einsum|matmul|@|bmm", r"strides", "a product, of which no strides are promised"),
    (r"expand|broadcast|__setitem__", r"raises .*more than one element", "refused for any index"),
    (r"", r"raises .*detach views", "more are views"),
    (r"\.m[HT]", r"raises .*Got 0-D", "a warning in PyTorch, to be an error"),
    (r"binary_cross_entropy_with_logits", r"dtype", "the common dtype, as of other losses"),
    (r"", r", not .*(Dimension out of range|setStorage|dim should be positive)", "another order"),
    (r"adaptive_avg_pool", r"not ValueError", "RuntimeError, as for other ranks"),
    (r"", r"does not raise .*(Expected a proper Tensor|can't be cast)", "works here"),
    # Empty tensors
    (r"multi_margin_loss", r"value nan", "the mean of nothing"),
    (r"addcmul", r"dtype", "the dtype of the numbers too"),
    (r"", r"\.stride\(\): \(.*, not \(0", "nothing has no strides"),
    (r"", r"INDICES element", "another order"),
    (r"nanmedian", r"requires_grad", "nothing has no median"),
    (r"scatter_reduce", r"raises IndexError", "an empty index of another rank"),
)
KNOWN = [(re.compile(line), re.compile(what), why) for line, what, why in _KNOWN]


def reason(lines: list[str], what: str) -> str:
    """Return why a program differs as it does, if that is known; or ''."""
    for line, difference, why in KNOWN:
        if difference.search(what) and any(line.search(one) for one in lines):
            return why
    return ""
