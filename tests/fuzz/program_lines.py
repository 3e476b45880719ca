"""Lines of random programs: templates whose holes are filled with tensors, sizes and numbers.

A template is Python in which ``lib`` is the library, and ``F`` its nn.functional; a hole is a
letter in angle brackets:

    <t> <f> <r> <i> <b> <c>   a tensor: any, differentiable, real floating, integer, bool, complex
    <o>             a tensor that broadcasts with the first one
    <m>             a bool tensor that broadcasts with the first one
    <v>             a tensor to be written: no leaf that requires grad, if there is another
    <x>             the first tensor again
    <n> <p> <k>     a number; a number above zero; True or False
    <d> <D> <e>     a dimension of the first tensor; several of them; one beyond the last too
    <s> <z>         an int from -2 to 3; an int from 0 to 3
    <S> <E> <P>     the first tensor's size in another form; expanded; its dimensions permuted
    <X>             an index of the first tensor
    <T:dtype:size>  a new leaf, where the size may name the first tensor's with x[0], x[1] ...
    <A:rank>        a real floating tensor of that rank
"""

from convcore.functions.table import ROWS

SMOOTH = [
    "sin",
    "cos",
    "tan",
    "asin",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "exp",
    "expm1",
    "exp2",
    "log",
    "log1p",
    "log2",
    "log10",
    "sqrt",
    "rsqrt",
    "square",
    "reciprocal",
    "sigmoid",
    "abs",
    "neg",
    "positive",
    "sgn",
    "angle",
    "sinc",
    "conj",
    "real",
    "resolve_conj",
]
REAL = [
    "erf",
    "erfc",
    "lgamma",
    "digamma",
    "ceil",
    "floor",
    "round",
    "trunc",
    "frac",
    "sign",
    "deg2rad",
    "rad2deg",
    "erfinv",
    "logit",
    "relu",
    "nan_to_num",
    "signbit",
    "isnan",
    "isfinite",
    "isinf",
]
INPLACE = [
    "sin_",
    "tanh_",
    "exp_",
    "sigmoid_",
    "relu_",
    "neg_",
    "square_",
    "abs_",
    "sqrt_",
    "floor_",
    "reciprocal_",
    "zero_",
    "cos_",
    "trunc_",
    "expm1_",
    "log1p_",
    "frac_",
    "sign_",
    "atan_",
]
ACTIVATIONS = [name for name in ROWS if name != "threshold"]
BINARY = [
    "add",
    "sub",
    "mul",
    "div",
    "maximum",
    "minimum",
    "fmax",
    "fmin",
    "atan2",
    "pow",
    "remainder",
    "fmod",
    "hypot",
    "logaddexp",
    "xlogy",
    "copysign",
    "floor_divide",
    "true_divide",
    "rsub",
]
OPERATORS = ["+", "-", "*", "/", "//", "%", "**", "<", "<=", ">", ">=", "==", "!="]
INTEGERS = ["bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift"]
COMPARISONS = [
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "isclose",
    "logical_and",
    "logical_or",
    "logical_xor",
]
REDUCTIONS = [
    "sum",
    "mean",
    "prod",
    "amax",
    "amin",
    "var",
    "std",
    "logsumexp",
    "nansum",
    "nanmean",
    "all",
    "any",
    "norm",
]
LOSSES = ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div", "poisson_nll_loss"]

ELEMENTWISE = (
    *(f"lib.{name}(<f>)" for name in SMOOTH),
    *(f"lib.{name}(<r>)" for name in REAL),
    *(f"<v>.{name}()" for name in INPLACE),
    *(f"F.{name}(<r>)" for name in ACTIVATIONS),
    *(f"F.{name}(<v>, inplace=<k>)" for name in ("relu", "elu", "hardtanh", "silu")),
    *(f"lib.{name}(<t>, <o>)" for name in BINARY),
    *(f"lib.{name}(<t>, <o>)" for name in COMPARISONS),
    *(f"lib.{name}(<i>, <o>)" for name in INTEGERS),
    *(f"<t> {sign} <o>" for sign in OPERATORS),
    *(f"<t> {sign} <n>" for sign in OPERATORS),
    *(f"<n> {sign} <t>" for sign in OPERATORS),
    *(f"<v>.{name}_(<o>)" for name in ("add", "sub", "mul", "div", "copy", "pow", "atan2", "fmod")),
    *(
        f"<v>.{name}_(<n>)"
        for name in ("add", "mul", "fill", "div", "remainder", "clamp_min", "lt")
    ),
    *("<b> & <o>", "<b> | <o>", "~<b>", "-<t>", "+<t>", "abs(<t>)", "<i> << <z>", "<i> >> <z>"),
    *("lib.add(<t>, <o>, alpha=<n>)", "lib.sub(<t>, <o>, alpha=<s>)", "<v>.add_(<o>, alpha=2)"),
    *("lib.clamp(<t>, <n>, <n>)", "lib.clamp(<t>, min=<o>)", "<v>.clamp_(-1, 1)"),
    *("lib.addcmul(<t>, <o>, <o>, value=<n>)", "lib.addcdiv(<f>, <o>, <o>, value=<n>)"),
    *("<v>.addcmul_(<o>, <o>)", "lib.lerp(<f>, <o>, <n>)", "lib.lerp(<f>, <o>, <o>)"),
    *("lib.round(<r>, decimals=<s>)", "lib.div(<t>, <o>, rounding_mode='floor')"),
    "lib.div(<t>, <o>, rounding_mode='trunc')",
    *("lib.where(<m>, <t>, <o>)", "lib.where(<m>, <t>, <n>)", "<t>.masked_fill(<m>, <n>)"),
    *("<v>.masked_fill_(<m>, <n>)", "<t>.to(lib.float64)", "<t>.to(lib.float32)", "<t>.long()"),
    *("<t>.int()", "<t>.bool()", "<t>.double()", "<t>.type_as(<o>)", "<r>.to(lib.complex64)"),
    *(
        "lib.complex(<r>, <o>)",
        "lib.view_as_real(<c>)",
        "<c>.imag",
        "<c>.real",
        "<c>.mH",
        "<c>.conj()",
    ),
    *("lib.polar(lib.abs(<r>) + 1, <o>)", "<t>.clone()", "<f>.detach()", "<f>.contiguous()"),
    *("F.threshold(<r>, <n>, <n>)", "F.gelu(<r>, approximate='tanh')"),
    *("F.softplus(<r>, <p>, <p>)", "F.leaky_relu(<r>, <n>)"),
    *("F.hardtanh(<r>, -1, <p>)", "F.celu(<r>, <p>)"),
    *("F.elu(<r>, <p>)", "lib.clip(<t>, <n>)", "lib.special.expit(<r>)"),
    *("lib.nextafter(<r>, <o>)",),
)

REDUCING = (
    *(f"lib.{name}(<t>)" for name in REDUCTIONS if name not in ("amax", "amin", "logsumexp")),
    *(f"lib.{name}(<t>, <d>)" for name in REDUCTIONS if name != "norm"),
    *(f"lib.{name}(<t>, <d>, keepdim=True)" for name in REDUCTIONS if name != "norm"),
    *(f"<t>.{name}(<D>)" for name in ("sum", "mean", "amax", "var", "std", "logsumexp", "all")),
    *(f"<t>.{name}(<D>, keepdim=<k>)" for name in ("sum", "mean", "amin", "nansum")),
    *(f"lib.{name}(<t>, <d>)[0]" for name in ("max", "min", "median")),
    *(f"lib.{name}(<t>, <d>)" for name in ("cumsum", "cumprod", "argsort")),
    *(f"lib.{name}(<t>)" for name in ("max", "min", "median", "count_nonzero")),
    *("lib.softmax(<f>, <d>)", "lib.log_softmax(<f>, <d>)", "F.softmin(<r>, <d>)"),
    *(
        "lib.sort(<t>, <d>)[0]",
        "lib.sort(<t>, dim=<d>, descending=<k>)[0]",
        "lib.topk(<t>, 1, <d>)[0]",
    ),
    *("lib.argmax(<t>, <d>)", "lib.argmin(<t>)", "lib.sum(<t>, <d>, dtype=lib.float64)"),
    *(
        "lib.mean(<t>, dtype=lib.float32)",
        "lib.var(<f>, <d>, correction=0)",
        "<t>.std(unbiased=<k>)",
    ),
    *("lib.var_mean(<f>, <d>)[0]", "lib.std_mean(<f>, <d>)[1]", "lib.aminmax(<t>)[0]"),
    *(
        "lib.linalg.vector_norm(<f>, <n>, <d>)",
        "lib.linalg.vector_norm(<f>)",
        "lib.norm(<f>, <p>, <d>)",
    ),
    *("lib.kthvalue(<r>, 1, <d>)[0]", "lib.quantile(<r>, 0.25, <d>)", "lib.diff(<t>, dim=<d>)"),
    *("lib.dist(<r>, <o>, <n>)", "lib.trapezoid(<r>, dim=<d>)"),
    *("F.normalize(<r>, dim=<d>)", "F.glu(<r>, <d>)", "lib.count_nonzero(<t>, <d>)"),
    *("<v>.cumsum_(<d>)", "<f>.sum_to_size(1)", "F.cosine_similarity(<r>, <o>, <d>)"),
)

SHAPES = (
    *("<t>.reshape(<S>)", "<t>.view(<S>)", "<t>.flatten()", "<t>.flatten(<d>)", "lib.ravel(<t>)"),
    *("<t>.transpose(<d>, <d>)", "<t>.permute(<P>)", "<t>.unsqueeze(<e>)", "<t>.squeeze()"),
    *(
        "<t>.squeeze(<d>)",
        "<t>.expand(<E>)",
        "<t>.T",
        "<t>.mT",
        "<t>.movedim(<d>, <d>)",
        "<t>.view(-1)",
    ),
    *("<t>.narrow(<d>, 0, 1)", "<t>.select(<d>, <s>)", "<t>.unfold(<d>, 1, 1)", "<t>.diagonal()"),
    *("<t>.unfold(<d>, 2, 1)", "lib.flip(<t>, <D>)", "lib.roll(<t>, <s>, <d>)", "lib.rot90(<t>)"),
    *(
        "lib.tril(<t>, <s>)",
        "lib.triu(<t>, <s>)",
        "lib.diag_embed(<t>)",
        "lib.diag(<t>)",
        "<t>.repeat(<E>)",
    ),
    *("lib.tile(<t>, (2,))", "lib.repeat_interleave(<t>, 2, <d>)", "lib.cat([<t>, <t>], <d>)"),
    *(
        "lib.cat([<t>, <o>], <d>)",
        "lib.stack([<t>, <o>], <e>)",
        "lib.hstack([<t>, <o>])",
        "lib.vstack([<t>, <o>])",
    ),
    *("lib.split(<t>, 1, <d>)[0]", "lib.split(<t>, 2, <d>)[-1]", "lib.chunk(<t>, 2, <d>)[-1]"),
    *("lib.unbind(<t>, <d>)[-1]", "lib.tensor_split(<t>, 2, <d>)[0]", "lib.atleast_2d(<t>)"),
    *(
        "lib.broadcast_tensors(<t>, <o>)[1]",
        "lib.swapaxes(<t>, <d>, <d>)",
        "<t>.as_strided((2,), (1,))",
    ),
    *("lib.meshgrid(<t>, <t>, indexing='ij')[0]", "<t>.unflatten(<d>, (1, -1))"),
    *("F.pad(<f>, (1, 1))", "F.pad(<f>, (<s>, 1), value=<n>)"),
    *("F.pad(<A:3>, (1, 0), mode='reflect')", "F.pad(<A:3>, (1, 1), mode='circular')"),
    *(
        "F.pad(<A:4>, (1, 0, 0, 1), mode='replicate')",
        "<A:4>.contiguous(memory_format=lib.channels_last)",
    ),
    *(
        "<A:4>.to(memory_format=lib.channels_last)",
        "<t>.swapdims(0, -1)",
        "<v>.t_()",
        "<v>.unsqueeze_(0)",
    ),
    *(
        "<v>.squeeze_()",
        "<v>.transpose_(0, -1)",
        "lib.fliplr(<t>)",
        "lib.block_diag(<t>, <t>)",
        "lib.column_stack([<t>, <o>])",
    ),
    *(
        "lib.pixel_shuffle(<T:float64:(1, 4, 2, 3)>, 2)",
        "lib.channel_shuffle(<T:float32:(2, 4, 2, 2)>, 2)",
    ),
    *(
        "<t>.T.contiguous()",
        "lib.empty_like(<t>).is_contiguous()",
        "lib.zeros_like(<t>)",
        "<t>.new_zeros((2, 2))",
    ),
)

INDEXING = (
    *(
        "<t>[<X>]",
        "<t>[<X>]",
        "<t>[<X>]",
        "<t>[<m>]",
        "<t>[lib.tensor([0, -1])]",
        "<t>[None, ..., :1]",
    ),
    *("<v>.__setitem__(<X>, <n>)", "<v>.__setitem__(<X>, <n>)", "<v>.__setitem__(<m>, <n>)"),
    *(
        "<v>.__setitem__(<X>, <o>)",
        "<v>.__setitem__(Ellipsis, <o>)",
        "<v>[<X>].mul_(2)",
        "<v>[<X>].add_(<n>)",
    ),
    *(
        "lib.index_select(<t>, <d>, lib.tensor([0, 0]))",
        "lib.gather(<t>, <d>, lib.zeros_like(<o>, dtype=lib.long))",
    ),
    *("lib.take(<t>, lib.tensor([0, -1, 0]))", "lib.masked_select(<t>, <m>)", "lib.nonzero(<t>)"),
    *("<t>.index_add(<d>, lib.tensor([0]), <o>)"),
    *(
        "<t>.scatter_add(<d>, lib.zeros_like(<x>, dtype=lib.long), <x> * 2)",
        "<t>.scatter(<d>, lib.tensor([0]), <n>)",
    ),
    *("lib.take_along_dim(<t>, lib.zeros_like(<x>, dtype=lib.long), <d>)",),
    *(
        "<t>.masked_scatter(<m>, <t>)",
        "<v>.index_put_((lib.tensor([0, 0]),), <o>, accumulate=True)",
    ),
    *("lib.unique(<t>)",),
    *(
        "lib.searchsorted(lib.sort(<r>)[0], <o>)",
        "lib.bucketize(<r>, lib.tensor([0.0, 1.0]))",
        "lib.isin(<t>, <o>)",
    ),
    *(
        "<r>.scatter_reduce(<d>, lib.zeros_like(<x>, dtype=lib.long), <x> * 2, 'amax')",
        "lib.argwhere(<t>)",
    ),
    *("lib.bincount(lib.abs(<i>).flatten())", "<v>.diagonal().fill_(<n>)"),
    *("F.one_hot(lib.abs(<i>))", "F.embedding(lib.tensor([[0, 1]]), <A:2>)"),
)

PRODUCTS = (
    *(
        "<f> @ <o>",
        "lib.matmul(<t>, <t>.mT)",
        "lib.matmul(<f>, <f>)",
        "<A:2> @ <T:float32:(x[1], 3)>",
    ),
    *(
        "<A:2>.mm(<T:float64:(x[1], 2)>)",
        "lib.bmm(<A:3>, <T:float32:(x[0], x[2], 2)>)",
        "<A:2>.mv(<T:float32:(x[1],)>)",
    ),
    *("lib.dot(<A:1>, <o>)", "lib.outer(<A:1>, <A:1>)", "lib.einsum('ij,kj->ik', <A:2>, <A:2>)"),
    *(
        "lib.einsum('ij->ji', <A:2>)",
        "lib.einsum('ii->i', <A:2>)",
        "lib.einsum('...i,...i->...', <f>, <o>)",
    ),
    *(
        "lib.einsum('bij,bjk->bik', <A:3>, <T:float32:(x[0], x[2], 2)>)",
        "lib.einsum('i,j->ij', <A:1>, <A:1>)",
    ),
    *(
        "lib.einsum('abcd->dbca', <A:4>)",
        "lib.einsum('ij,ij->', <A:2>, <o>)",
        "lib.tensordot(<A:2>, <A:2>, 1)",
    ),
    *("lib.tensordot(<A:3>, <A:3>, dims=([0], [0]))",),
    *(
        "lib.addmm(<n> * <A:2>, <A:2>, <o>)",
        "lib.baddbmm(<A:3>, <A:3>, <T:float32:(x[0], x[2], x[2])>)",
    ),
    *("lib.trace(<A:2>)", "lib.cross(<A:2>, <o>)"),
    *("lib.linalg.det(<A:2>)", "lib.linalg.inv(<T:float64:(3, 3)>)"),
    *("lib.linalg.solve(<T:float64:(3, 3)>, <T:float64:(3, 2)>)",),
    *(
        "F.linear(<r>, <T:float32:(2, x[-1])>)",
        "F.linear(<r>, <T:float64:(3, x[-1])>, <T:float64:(3,)>)",
    ),
    "lib.cdist(<A:2>, <o>)",
    *(
        "lib.einsum('ij,jk,kl->il', <A:2>, <T:float32:(x[1], 2)>, <T:float32:(2, 3)>)",
        "<c> @ <c>.mH",
    ),
)

LAYERS = (
    *(
        "F.conv1d(<A:3>, <T:float32:(2, x[1], 2)>)",
        "F.conv1d(<A:3>, <T:float64:(2, x[1], 1)>, stride=2)",
    ),
    *(
        "F.conv2d(<A:4>, <T:float32:(2, x[1], 2, 2)>, padding=1)",
        "F.conv2d(<A:4>, <T:float32:(3, x[1], 1, 1)>, <T:float32:(3,)>)",
    ),
    *(
        "F.conv2d(<A:4>, <T:float64:(2, x[1], 3, 2)>, padding='same')",
        "F.conv2d(<A:4>, <T:float32:(x[1], 1, 2, 2)>, padding=1, groups=x[1])",
    ),
    *(
        "F.conv2d(<A:4>, <T:float64:(x[1], x[1], 3, 3)>, stride=2, padding=2, dilation=2)",
        "F.conv2d(<A:3>, <T:float32:(2, x[0], 1, 2)>)",
    ),
    *(
        "F.conv_transpose2d(<A:4>, <T:float32:(x[1], 2, 2, 2)>, stride=2)",
        "F.conv_transpose1d(<A:3>, <T:float64:(x[1], 2, 3)>, padding=1)",
    ),
    *(
        "F.conv3d(<T:float32:(1, 2, 3, 3, 2)>, <T:float32:(2, 2, 2, 2, 2)>)",
        "F.conv_transpose2d(<A:4>, <T:float64:(x[1], 1, 3, 3)>, stride=2, output_padding=1)",
    ),
    *(
        "F.max_pool2d(<A:4>, 2, 1)",
        "F.max_pool2d(<A:4>, 3, 2, 1)",
        "F.max_pool1d(<A:3>, 2, ceil_mode=<k>)",
    ),
    *(
        "F.avg_pool2d(<A:4>, 2, 1)",
        "F.avg_pool2d(<A:4>, 3, 2, 1, count_include_pad=<k>)",
        "F.avg_pool1d(<A:3>, 2, ceil_mode=True)",
    ),
    *(
        "F.adaptive_avg_pool2d(<A:4>, (2, 1))",
        "F.adaptive_max_pool2d(<A:4>, 2)",
        "F.adaptive_avg_pool1d(<A:3>, 2)",
    ),
    *("F.max_pool2d(<T:float32:(2, 2, 4, 5)>, 2, dilation=2, padding=1)", "F.unfold(<A:4>, 2)"),
    *(
        "F.batch_norm(<A:4>, None, None, training=True)",
        "F.batch_norm(<A:4>, lib.zeros(x[1]), lib.ones(x[1]), <T:float32:(x[1],)>)",
    ),
    *(
        "F.layer_norm(<r>, x[-1:])",
        "F.layer_norm(<A:3>, (x[2],), <T:float32:(x[2],)>, <T:float32:(x[2],)>)",
    ),
    *(
        "F.group_norm(<A:4>, 1)",
        "F.instance_norm(<A:4>)",
        "F.rms_norm(<r>, x[-1:])",
        "F.local_response_norm(<A:4>, 3)",
    ),
    *(
        "F.interpolate(<A:4>, scale_factor=2)",
        "F.interpolate(<A:4>, size=(3, 2), mode='bilinear')",
        "F.interpolate(<A:3>, size=3, mode='linear', align_corners=<k>)",
    ),
    *(
        "F.interpolate(<A:4>, size=(2, 3), mode='bicubic')",
        "F.fold(<T:float32:(1, 8, 4)>, (3, 3), 2)",
        "F.grid_sample(<A:4>, <T:float64:(x[0], 2, 2, 2)>, align_corners=<k>)",
    ),
    *(
        "F.prelu(<A:3>, <T:float32:(x[1],)>)",
        "F.prelu(<r>, <T:float32:(1,)>)",
        "F.scaled_dot_product_attention(<A:3>, <A:3>, <A:3>)",
    ),
    *(f"F.{name}(<r>, <o>)" for name in LOSSES),
    *(f"F.{name}(<r>, <o>, reduction='{how}')" for name in LOSSES for how in ("none", "sum")),
    *(
        "F.cross_entropy(<A:2>, <T:float32:(x[0], x[1])>)",
        "F.cross_entropy(<A:2>, lib.zeros(x[0], dtype=lib.long), label_smoothing=0.1)",
    ),
    *(
        "F.nll_loss(lib.log_softmax(<A:2>, 1), lib.zeros(x[0], dtype=lib.long), reduction='none')",
        "F.binary_cross_entropy_with_logits(<r>, <o>)",
    ),
    *(
        "F.binary_cross_entropy(lib.sigmoid(<r>), <m>.to(lib.float32))",
        "F.cross_entropy(<A:4>, lib.zeros((x[0], *x[2:]), dtype=lib.long))",
    ),
    *("F.triplet_margin_loss(<A:2>, <o>, <o>)", "F.pairwise_distance(<A:2>, <o>)"),
    *(
        "F.gaussian_nll_loss(<r>, <o>, lib.ones_like(<o>))",
        "F.margin_ranking_loss(<r>, <o>, lib.ones_like(<x>))",
        "F.cosine_embedding_loss(<A:2>, <o>, lib.ones(x[0]))",
    ),
)

GRAPH = (
    *(
        "<f>.register_hook(lambda g: log.append(tuple(g.shape)))",
        "<f>.register_hook(lambda g: g * 2)",
        "<f>.register_hook(lambda g: log.append(str(g.dtype)))",
        "<f>.register_hook(lambda g: g.neg())",
        "<f>.register_hook(lambda g: lib.zeros_like(g))",
        "<f>.register_hook(lambda g: g * 3).remove()",
    ),
    *(
        "<f>.retain_grad()",
        "<v>.requires_grad_()",
        "<f>.detach().requires_grad_()",
        "<v>.detach_()",
        "<f>.requires_grad",
        "<f>.is_leaf",
        "<f>._version",
    ),
)

# Families and how often each is drawn.
FAMILIES = (
    (ELEMENTWISE, 0.24),
    (REDUCING, 0.12),
    (SHAPES, 0.15),
    (INDEXING, 0.11),
    (PRODUCTS, 0.08),
    (LAYERS, 0.2),
    (GRAPH, 0.1),
)
