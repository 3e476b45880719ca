"""Functions in exported models, a table for each family: they compute what they do here."""

import pytest

import convcore
from convcore.nn import functional as F


def in_place(x):
    x = x * 1
    x += 1
    x *= 2
    x -= 0.5
    x /= 3
    x %= 7
    mask = x > 0
    mask &= x < 3
    mask |= x > 5
    return x * mask


def written(x, key, value):
    y = x * 1.5
    y[key] = value
    return y


def into_zeros(x):
    y = convcore.zeros_like(x)
    y[:, 1:] = x[:, :-1]
    return y + x


# Sums, products, quotients and bounds
ARITHMETIC = {
    "alpha": lambda x: x.add(x, alpha=2).sub(x, alpha=3),
    "number_over_tensor": lambda x: 2 / x.clamp(1),
    "floor_divide": lambda x: x // 2 + 7 // x.clamp(2),
    "remainder": lambda x: x % 2 + x.remainder(-0.3) + 7 % x.clamp(2),
    "fmod": lambda x: x.fmod(0.3),
    "rounded_quotients": lambda x: (
        x.div(0.3, rounding_mode="trunc") + x.div(0.3, rounding_mode="floor")
    ),
    "of_integers": lambda x: (
        ((x * 9).long() - 1) // 2 + (x * 9).long() % 3 + (x * 9).long().clamp(0, 1)
    ),
    "integers_towards_zero": lambda x: (x * 9).long().div(2, rounding_mode="trunc"),
    "power_of_a_number": lambda x: 2**x,
    "rsub": lambda x: convcore.rsub(x, 1, alpha=2),
    "bools": lambda x: (x > 0) * (x < 1),
    "clamp_to_tensors": lambda x: x.clamp(x * 0 - 1, convcore.tensor(0.5)),
    "clamp_min": lambda x: x.clamp_min(0.1).clamp_max(0.5),
    "lerp": lambda x: x.lerp(x * 2, 0.3),
    "addcmul": lambda x: convcore.addcmul(x, x, x, value=2),
    "addcdiv": lambda x: convcore.addcdiv(x, x, x.exp()),
    "hypot": lambda x: convcore.hypot(x, x * 2),
    "logaddexp": lambda x: convcore.logaddexp(x, -x),
    "xlogy": lambda x: convcore.xlogy(x.relu(), x.relu()),
    "atan2": lambda x: convcore.atan2(x, x.roll(1, 1)) + convcore.atan2(x * 0, x.relu()),
    "in_place": in_place,
}

# Functions of single elements
ELEMENTWISE = {
    "rounding": lambda x: (
        x.round() + x.floor() + x.ceil() + x.trunc() + x.frac() + x.sign() + x.fix()
    ),
    "exponentials": lambda x: x.exp() + x.expm1() + x.exp2(),
    "small": lambda x: (x * 1e-6).expm1() * 1e6 + (x * 1e-6).log1p() * 1e6,
    "logarithms": lambda x: x.abs().log1p() + x.abs().log2() + x.abs().log10(),
    "roots": lambda x: x.abs().sqrt() + x.abs().rsqrt(),
    "angles": lambda x: x.tan() + x.atan() + x.tanh().asin() + x.tanh().acos(),
    "hyperbolic": lambda x: (
        x.sinh() + x.cosh() + x.asinh() + x.tanh().atanh() + (x.abs() + 1).acosh()
    ),
    "errors": lambda x: x.erf() + x.erfc(),
    "other_names": lambda x: x.absolute() + x.negative() + x.sgn() + convcore.special.expit(x),
    "degrees": lambda x: x.deg2rad() + x.rad2deg(),
    "sinc": lambda x: x.sinc() + (x * 0).sinc(),
    "logit": lambda x: x.sigmoid().logit() + x.logit(0.1),
    "of_integers": lambda x: (x * 3).int().exp(),
    "in_place": lambda x: (x * 1).abs_().sqrt_(),
}

# Comparisons, logic and choices
COMPARING = {
    "greater": lambda x: convcore.where(x > 0.5, x, -x),
    "greater_equal": lambda x: (x >= 0).float(),
    "equal": lambda x: (x == x.abs()) * x,
    "bitwise": lambda x: (x != 0) & (x < 1) | (x <= -1),
    "not_and_xor": lambda x: ~(x > 0) ^ (x < 1),
    "masked_fill": lambda x: x.masked_fill(x > 0.5, -1e9),
    "logical": lambda x: convcore.logical_and(x, x > 0).logical_or(x < -1).logical_not(),
    "logical_xor": lambda x: convcore.logical_xor(x > 0, x > 1),
    "integers": lambda x: (x * 4).int() > 2.5,
    "where_method": lambda x: x.where(x > 0, convcore.tensor(0.0)),
    "in_place": lambda x: (x > 0).logical_and_(x < 1),
    "no_numbers": lambda x: x.log().isnan() + x.isinf() + x.isfinite() * x,
    "nan_to_num": lambda x: x.log().nan_to_num(1.0, 2.0, 3.0),
    "isclose": lambda x: x.isclose(x + 1e-9),
}

# Products of vectors, matrices and batches
PRODUCTS = {
    "einsum": lambda x: convcore.einsum("nchw,ncvw->nchv", x, x),
    "einsum_of_a_list": lambda x: convcore.einsum("nchw->nhc", [x]),
    "baddbmm": lambda x: convcore.baddbmm(x[:, 0, :, :5], x[:, 1], x[:, 2].mT, beta=2, alpha=0.5),
    "addmm": lambda x: convcore.addmm(convcore.ones(3), x.flatten(1), convcore.ones(120, 3)),
    "mv": lambda x: x.flatten(1).mv(convcore.arange(120.0)),
    "outer": lambda x: convcore.outer(x[:, 0, 0, 0], convcore.arange(3.0)),
    "cross": lambda x: convcore.cross(x[:, :3], x[:, 1:], 1),
}

# Norms, distances and losses
DISTANCES = {
    "norm": lambda x: x.norm(dim=1),
    "norm_1": lambda x: x.norm(1, 2),
    "norm_of_all": lambda x: x[:, :1].norm(),
    "norm_3": lambda x: x.norm(3, (2, 3)),
    "extreme_norms": lambda x: x.norm(float("inf"), 1) + x.norm(float("-inf"), 1) + x.norm(0, 1),
    "linalg_norm": lambda x: convcore.linalg.norm(x, dim=1),
    "vector_norm": lambda x: convcore.linalg.vector_norm(x, dim=1, keepdim=True),
    "matrix_norm": lambda x: convcore.linalg.matrix_norm(x),
    "normalize": lambda x: F.normalize(x),
    "normalize_1": lambda x: F.normalize(x, p=1, dim=2),
    "cosine_similarity": lambda x: F.cosine_similarity(x, x.roll(1, 1)),
    "pairwise_distance": lambda x: F.pairwise_distance(x, x * 2),
    "cdist": lambda x: convcore.cdist(x, x[:, :, :2]),
    "dist": lambda x: convcore.dist(x, x * 2),
    "losses": lambda x: (
        F.mse_loss(x, x * 2)
        + F.l1_loss(x, x * 2)
        + F.binary_cross_entropy_with_logits(x, x.sigmoid())
    ),
}

# Axes reduced to one value, and running sums
REDUCING = {
    "argmax": lambda x: x.argmax(1),
    "argmax_of_all": lambda x: x[:1].argmax(),
    "argmin": lambda x: x.argmin(-1, True),
    "max": lambda x: x.max(1),
    "max_of_all": lambda x: x.max(),
    "min": lambda x: convcore.min(x, 2, keepdim=True),
    "max_of_two": lambda x: convcore.max(x, x * 2) + convcore.min(x, x * 3),
    "aminmax": lambda x: x.aminmax(dim=1),
    "any": lambda x: (x > 1).any(1),
    "all": lambda x: (x > -1).all(),
    "count_nonzero": lambda x: (x > 0).count_nonzero(1),
    "prod": lambda x: x.prod(1),
    "std": lambda x: x.std(1),
    "std_of_all": lambda x: x.std(),
    "var": lambda x: x.var((2, 3), keepdim=True),
    "biased": lambda x: x.var(dim=1, unbiased=False),
    "correction": lambda x: x.std(dim=(0, 1), correction=2),
    "var_mean": lambda x: convcore.var_mean(x, 1),
    "std_mean": lambda x: convcore.std_mean(x),
    "cumsum": lambda x: x.cumsum(1),
    "cumsum_of_bools": lambda x: (x > 0).cumsum(-1),
    "logsumexp": lambda x: x.logsumexp(1),
    "nansum": lambda x: x.log().nansum(1) + x.log().nanmean(1),
}

# Sorting
ORDERING = {
    "topk": lambda x: x.topk(2, 1),
    "smallest": lambda x: x.topk(2, largest=False),
    "sort": lambda x: x.sort(1, descending=True),
    "argsort": lambda x: x.argsort(2),
    "kthvalue": lambda x: x.kthvalue(2, 1),
    "median": lambda x: x.median(1, True),
    "median_of_all": lambda x: x[0].median(),
    "sort_batch": lambda x: x.sort(0)[0],
}

# Elements in another order or shape, or repeated
REARRANGING = {
    "flip": lambda x: x.flip(3),
    "flip_two": lambda x: x.flip((1, 2)),
    "flips": lambda x: x.fliplr() + x.flatten(1).flipud().view_as(x),
    "rot90": lambda x: x.rot90(1, (2, 3)),
    "rot270": lambda x: x.rot90(3, (2, 3)),
    "rot180": lambda x: x.rot90(2, (2, 3)),
    "repeat": lambda x: x.repeat(1, 4, 1, 1),
    "repeat_new_axis": lambda x: x.repeat(2, 1, 1, 1, 1),
    "tile": lambda x: x.tile(2),
    "repeat_interleave": lambda x: x.repeat_interleave(2, 1),
    "repeat_interleave_batch": lambda x: x.repeat_interleave(2, 0),
    "repeat_by_numbers": lambda x: x.repeat_interleave(convcore.tensor([1, 0, 2, 1]), 1),
    "expand": lambda x: x[:, :1].expand(-1, 4, -1, -1),
    "expand_as": lambda x: x[:1, :1].expand_as(x),
    "roll": lambda x: x.roll(1, 1) + x.roll((1, -2), (2, 3)),
    "roll_batch": lambda x: x.roll(-1, 0),
    "movedim": lambda x: x.movedim(1, -1),
    "swapaxes": lambda x: x.swapaxes(1, 2),
    "mT": lambda x: x.mT * 2,
    "T": lambda x: x.flatten(1).T,
    "unbind": lambda x: x.unbind(1),
    "iteration": lambda x: [each * 2 for each in x.transpose(0, 1)],
    "select": lambda x: x.select(1, -1),
    "narrow": lambda x: x.narrow(2, 1, 3),
    "split": lambda x: x.split_with_sizes([1, 3], 1),
    "tril": lambda x: x.tril() + x.triu(1),
    "diagonal": lambda x: x.diagonal(1, 2, 3),
    "unfold": lambda x: F.unfold(x, (2, 3), padding=1, stride=(1, 2)),
    "unfold_dilated": lambda x: F.unfold(x, 2, dilation=2),
    "windows": lambda x: x.unfold(3, 3, 2),
    "stacks": lambda x: (
        convcore.hstack([x, x]).sum(1) + convcore.dstack([x, x]).sum((1, 2))[:, None, None]
    ),
    "vstack": lambda x: convcore.vstack([x, x]),
    "flatten_end": lambda x: x.flatten(0, 1),
    "pixel_unshuffle": lambda x: F.pixel_unshuffle(x[..., :4, :], 2),
    "meshgrid": lambda x: convcore.meshgrid(x[0, 0, 0], x[0, 0, :, 0], indexing="ij"),
}

# Reading at keys
INDEXING = {
    "list": lambda x: x[:, [0, 2]],
    "index_of_two_axes": lambda x: x[:, convcore.tensor([[0, 1], [2, 3]])],
    "two_lists": lambda x: x[:, [0, 1], [2, 3]],
    "two_lists_apart": lambda x: x[:, [0, 1], :, [2, 3]],
    "list_after_new_axis": lambda x: x[:, None, [0, 1]],
    "list_after_number": lambda x: x[:, 0, :, [1, 2]],
    "constant_mask": lambda x: x[:, convcore.tensor([True, False, True, True])],
    "computed_index": lambda x: x[:, :, x[0, 0, :, 0].argsort()],
    "computed_pairs": lambda x: x[:, x[0, :, 0, 0].argsort(), x[0, :4, 1, 1].argsort()],
    "ellipsis": lambda x: x[..., 0],
    "new_axes": lambda x: x[..., None, 0],
    "negative": lambda x: x[:, -1, -3:-1, ::2],
    "nothing": lambda x: x[:],
    "broadcast": lambda x: x[:, convcore.tensor([[0], [1]]), convcore.tensor([0, 2])],
}

# Writing at keys
WRITING = {
    "number_at_slice": lambda x: written(x, (slice(None), slice(None, 2)), 1.0),
    "slice": lambda x: written(x, (slice(None), slice(None, 2)), x[:, 2:]),
    "number_as_key": lambda x: written(x, (slice(None), 0), x[:, 1]),
    "list": lambda x: written(x, (slice(None), slice(None), [0, 3]), x[:, :, :2]),
    "last": lambda x: written(x, (Ellipsis, -1), 0.5),
    "two_axes": lambda x: written(x, (slice(None), 1, slice(1, 3)), x[:, 0, :2]),
    "stepped": lambda x: written(
        x, (slice(None), slice(None), slice(0, None, 2)), x[:, :, ::2] * 2
    ),
    "everything": lambda x: written(x, slice(None), x[:, :1]),
    "mask": lambda x: written(x, x > 0.5, 0.0),
    "mask_of_first_axes": lambda x: written(x, x[..., 0] > 0.5, convcore.tensor(0.0)),
    "pairs": lambda x: written(x, (convcore.tensor([0, 1]), convcore.tensor([0, 1])), 2.0),
    "index_put": lambda x: convcore.index_put(
        x, (convcore.tensor([0, 0]),), convcore.tensor(2.0), accumulate=True
    ),
    "into_zeros": into_zeros,
}

# Reading and adding at indices along one axis
ALONG_AXES = {
    "gather": lambda x: x.gather(1, x.argsort(1)),
    "take_along_dim": lambda x: x.take_along_dim(x.argsort(1), 1),
    "index_select": lambda x: x.index_select(1, convcore.tensor([0, 0, 3])),
    "take": lambda x: x[0].take(convcore.tensor([5, 1])),
    "scatter": lambda x: convcore.zeros_like(x).scatter(1, x.argsort(1), x),
    "scatter_number": lambda x: x.scatter(1, x.argmax(1, keepdim=True), 9.0),
    "scatter_add": lambda x: x.scatter_add(1, x.argsort(1), x),
    "scatter_in_place": lambda x: convcore.zeros_like(x).scatter_(1, x.topk(2, 1)[1], 1.0),
    "scatter_reduce": lambda x: x.scatter_reduce(1, x.argsort(1), x, "sum"),
    "scatter_multiply": lambda x: x.scatter(1, x.argsort(1), x, reduce="multiply"),
    "index_add": lambda x: x.index_add(1, convcore.tensor([0, 2]), x[:, :2], alpha=2),
    "one_hot": lambda x: F.one_hot(x.argmax(1), 5),
}

# Pictures read at the points of a grid
SAMPLING = {
    "grid_sample": lambda x: F.grid_sample(
        x, x[:, :2].permute(0, 2, 3, 1).tanh(), align_corners=False
    ),
    "nearest": lambda x: F.grid_sample(
        x, x[:, :2].permute(0, 2, 3, 1).tanh() * 0.9, "nearest", "border", True
    ),
    "affine_grid": lambda x: F.affine_grid(x[:, :2, :3, 0], (len(x), 1, 4, 5), align_corners=False),
    "corners": lambda x: F.affine_grid(x[:, :2, :3, 0], (len(x), 1, 4, 5), align_corners=True),
}
FAMILIES = {
    "arithmetic": ARITHMETIC,
    "elementwise": ELEMENTWISE,
    "comparing": COMPARING,
    "products": PRODUCTS,
    "distances": DISTANCES,
    "reducing": REDUCING,
    "ordering": ORDERING,
    "rearranging": REARRANGING,
    "indexing": INDEXING,
    "writing": WRITING,
    "along_axes": ALONG_AXES,
    "sampling": SAMPLING,
}
CASES = {
    f"{family}-{name}": function
    for family, functions in FAMILIES.items()
    for name, function in functions.items()
}


@pytest.mark.parametrize("name", CASES)
def test_the_model_computes_what_the_function_does(name, agree, x):
    agree(CASES[name], x)
