"""What of PyTorch is out of scope for convcore: why, and what to use instead."""

from __future__ import annotations

import fnmatch
import functools

# A pattern of full names, and the rest of the sentence "X is out of scope for convcore: ...".
# The first that fits counts.
_REASONS = {
    "older amp": "it computes on the CPU; use autocast('cpu') and amp.GradScaler('cpu')",
    "cuda": "it computes on the CPU; use device 'cpu'",
    "sparse": "all tensors are dense; use scipy.sparse for sparse matrices",
    "quantized": "it computes in floating point; use ONNX Runtime for quantized nets",
    "distributed": "processes are MPI's; groups, collectives and DistributedDataParallel are there",
    "compiler": "kernels are compiled in advance; `convcore.optimize_for_inference` plans a net",
    "jit": "there is no second language; modules run as Python, and pickle saves them",
    "forward mode": "there is none; `autograd.functional.jvp` computes products with a Jacobian",
    "fx": "nothing traces Python code; hooks and `grad_fn` show what a net computes",
    "onnx": "one run of a net is recorded, by `onnx.export`; `convcore.onnx.load` reads models",
    "profiler": "use `convcore.inspection.profile` for a net, or `convcore bench` for layers",
    "extension": "it does not load PyTorch's compiled extensions; compose tensor functions "
    "instead, and read and write images with PIL",
    "nested": "tensors are rectangular; pad sequences with `nn.utils.rnn.pad_sequence`",
    "mobile": "there is one backend",
    "fft": "use numpy.fft on `tensor.numpy()`",
    "tensorboard": "use the package tensorboardX, which takes tensors as they are",
    "dispatch": "nothing is below autograd; `overrides.TorchFunctionMode` sees each function",
    "hub": "nothing is downloaded; import the net's own module, or take one of convcore.models",
    "signal": "use scipy.signal.windows",
    "private": "it is a private part of PyTorch",
}
_PATTERNS = (
    ("torch.cuda.amp*", "older amp"),
    ("torch.cuda.*", "cuda"),
    ("torch.*.cuda.*", "cuda"),
    ("torch.Tensor.cuda", "cuda"),
    ("torch.mps*", "cuda"),
    ("torch.xpu*", "cuda"),
    ("torch.mtia*", "cuda"),
    ("torch.Tensor.*pu", "cuda"),
    ("torch.Tensor.mtia", "cuda"),
    ("torch.Tensor.is_maia", "cuda"),
    ("torch.Tensor.record_stream", "cuda"),
    ("torch.cudnn_*", "cuda"),
    ("torch.miopen_*", "cuda"),
    ("torch.*cuda*", "cuda"),
    ("torch.sparse*", "sparse"),
    ("torch.*sparse*", "sparse"),
    ("torch.*.*sparse*", "sparse"),
    ("torch.*row_indices*", "sparse"),
    ("torch.*col_indices*", "sparse"),
    ("torch.Tensor.dense_dim", "sparse"),
    ("torch.*coalesce*", "sparse"),
    ("torch.*spmm", "sparse"),
    ("torch.*saddmm", "sparse"),
    ("torch.*sspaddmm", "sparse"),
    ("torch.*smm", "sparse"),
    ("torch.*quant*", "quantized"),
    ("torch.*q_scale", "quantized"),
    ("torch.*q_zero_point", "quantized"),
    ("torch.*q_per_channel*", "quantized"),
    ("torch.*qscheme", "quantized"),
    ("torch.*int_repr", "quantized"),
    ("torch.*choose_qparams*", "quantized"),
    ("torch.*fbgemm*", "quantized"),
    ("torch.q*int*", "quantized"),
    ("torch.ao*", "quantized"),
    ("torch.nn.intrinsic*", "quantized"),
    ("torch.nn.qat*", "quantized"),
    ("torch.distributed*", "distributed"),
    ("torch.nn.parallel.*", "distributed"),
    ("torch._dynamo*", "compiler"),
    ("torch._inductor*", "compiler"),
    ("torch._export*", "compiler"),
    ("torch._functorch*", "compiler"),
    ("torch._higher_order_ops*", "compiler"),
    ("torch.compile*", "compiler"),
    ("torch.export*", "compiler"),
    ("torch.jit*", "jit"),
    ("torch.autograd.forward_ad*", "forward mode"),
    ("torch.PyTorchFile*", "private"),
    ("torch.*Script*", "jit"),
    ("torch.*Type", "jit"),
    ("torch.fx*", "fx"),
    ("torch.onnx*", "onnx"),
    ("torch.profiler*", "profiler"),
    ("torch.autograd.profiler*", "profiler"),
    ("torch.monitor*", "profiler"),
    ("torch.utils.benchmark*", "profiler"),
    ("torch.utils.flop_counter*", "profiler"),
    ("torch.utils.cpp_extension*", "extension"),
    ("torch.library*", "extension"),
    ("torch.ops*", "extension"),
    ("torch.classes*", "extension"),
    ("torch.nested*", "nested"),
    ("torch.*nested*", "nested"),
    ("torch.Tensor.to_padded_tensor", "nested"),
    ("torch.utils.mobile*", "mobile"),
    ("torch.*mkldnn*", "mobile"),
    ("torch.*vulkan*", "mobile"),
    ("torch.fft*", "fft"),
    ("torch.*stft", "fft"),
    ("torch.utils.tensorboard.*", "tensorboard"),
    ("torch.hub.help", "hub"),
    ("torch.hub.list", "hub"),
    ("torch.hub.load", "hub"),
    ("torch.signal*", "signal"),
    ("torch.utils._python_dispatch.*", "dispatch"),
    ("torch._*", "private"),
)

# Names that at most one of 17 packages uses (benchmarks/name_census.csv), whatever module they are
# of, by what to use instead.
_RARE = {
    "NumPy and SciPy have it, for `x.numpy()`": """
        bartlett_window blackman_window hamming_window hann_window kaiser_window
        bessel_j0 bessel_j1 bessel_y0 bessel_y1 entr erfcx gammainc gammaincc i0 i0e i1 i1e igamma
        igammac log_ndtr modified_bessel_i0 modified_bessel_i1 modified_bessel_k0
        modified_bessel_k1 multigammaln mvlgamma ndtr ndtri polygamma xlog1py zeta
        cartesian_prod combinations corrcoef cov cummax cummin cumulative_trapezoid float_power
        frexp gcd heaviside histogram kron lcm ldexp logaddexp2 logcumsumexp mode msort
        nanmedian nanquantile unravel_index vander
        binomial geometric_ log_normal_
        cond lu lu_factor lu_factor_ex lu_solve lu_unpack matrix_exp matrix_rank
        apply_ map2_ map_
    """,
    "use torch.linalg.cholesky, pinv, qr, svd or solve_triangular": """
        cholesky_inverse pinverse qr svd triangular_solve
    """,
    "use @, torch.outer or torch.einsum": """
        addbmm addmv addr bilinear Bilinear chain_matmul inner matrix_power multi_dot vdot vecdot
    """,
    "use comparisons, such as x == math.inf": """
        is_same_size is_set_to isneginf isposinf isreal
    """,
    "conjugates and signs are computed at once; use conj": """
        conj_physical is_conj is_neg
    """,
    "write into a copy, y = x.clone(): y[index] = values": """
        as_strided_scatter diagonal_scatter index_copy index_fill index_reduce put select_scatter
        slice_scatter
    """,
    "use split, chunk, tensor_split or narrow": """
        dsplit hsplit narrow_copy unsafe_chunk unsafe_split unsafe_split_with_sizes vsplit
    """,
    "use torch.empty, torch.from_numpy and permute": """
        empty_permuted empty_strided from_file new_empty_strided
    """,
    "use torch.diag or torch.diagonal": """
        diagflat diagonal
    """,
    "use torch.cdist": """
        pdist
    """,
    "use OneCycleLR or CosineAnnealingWarmRestarts": """
        CyclicLR
    """,
    "multiply weight and bias by bn.weight / sqrt(bn.running_var + bn.eps)": """
        fuse_linear_bn_eval fuse_linear_bn_weights
    """,
    "use clip_grad_norm_": """
        clip_grad_norm
    """,
    "use AdamW, Adam, SGD or RMSprop": """
        ASGD Adafactor Adamax Muon Rprop SparseAdam adamax asgd rprop
        sparse_adam
    """,
    "use scipy.stats for densities and moments": """
        Binomial Chi2 Exponential Geometric Gumbel LKJCholesky Laplace LogisticNormal
        MixtureSameFamily Multinomial NegativeBinomial OneHotCategorical
        OneHotCategoricalStraightThrough RelaxedBernoulli RelaxedOneHotCategorical StudentT
        IndependentTransform PowerTransform ReshapeTransform SoftmaxTransform SoftplusTransform
        StickBreakingTransform
        chi2 lkj_cholesky logistic_normal mixture_same_family negative_binomial
        one_hot_categorical relaxed_bernoulli relaxed_categorical studentT
    """,
    "write the map of the weight, and register it with nn.utils.parametrize": """
        orthogonal
    """,
    "use the name with an underscore at its end": """
        constant dirac eye kaiming_normal kaiming_uniform normal uniform xavier_normal
        xavier_uniform
    """,
    "use MaxPool2d, AvgPool2d, or interpolate and MaxPool2d": """
        FractionalMaxPool2d FractionalMaxPool3d fractional_max_pool2d fractional_max_pool3d
        fractional_max_pool2d_with_indices fractional_max_pool3d_with_indices
        LPPool1d LPPool2d LPPool3d lp_pool1d lp_pool2d lp_pool3d
    """,
    "call the pooling with return_indices=True": """
        adaptive_max_pool1d_with_indices adaptive_max_pool2d_with_indices
        adaptive_max_pool3d_with_indices max_pool1d_with_indices max_pool2d_with_indices
        max_pool3d_with_indices
    """,
    "use CrossEntropyLoss, BCEWithLogitsLoss or TripletMarginLoss": """
        AdaptiveLogSoftmaxWithLoss MultiLabelMarginLoss MultiLabelSoftMarginLoss MultiMarginLoss
        NLLLoss2d SoftMarginLoss TripletMarginWithDistanceLoss multi_margin_loss
        multilabel_margin_loss multilabel_soft_margin_loss soft_margin_loss
        triplet_margin_with_distance_loss
    """,
    "use Embedding, and the sum or mean of its rows": """
        EmbeddingBag embedding_bag
    """,
    "use LocalResponseNorm, AlphaDropout, Softmax(1) or Conv1d": """
        CrossMapLRN2d FeatureAlphaDropout Softmax2d conv_tbc feature_alpha_dropout
    """,
    "make the layer, and convert it by to(memory_format=torch.channels_last)": """
        convert_conv2d_weight_memory_format convert_conv3d_weight_memory_format init
        memory_format skip_init
    """,
    "write a Dataset that returns an item of each": """
        StackDataset
    """,
    "use torch.autograd.functional": """
        hessian jacfwd jacrev jvp vhp vjp
    """,
    "put the net in evaluation mode, or use GroupNorm": """
        replace_all_batch_norm_modules_
    """,
    "a class with `__torch_function__` sees each call": """
        get_ignored_functions get_overridable_functions is_tensor_like is_tensor_method_or_property
    """,
    "use torch.testing.assert_close, of tensors from torch.rand or torch.randint": """
        assert_allclose make_tensor
    """,
}
_RARE_REASONS = {name: use for use, names in _RARE.items() for name in names.split()}

# What to use instead of a missing name, whatever module it is of: torch.geqrf or Tensor.geqrf.
_INSTEAD = {
    "chalf": "to(torch.complex64)",
    "const_data_ptr": "data_ptr()",
    "dim_order": "stride()",
    "grad_dtype": "grad.dtype",
    "hash_tensor": "hash(tensor.numpy().tobytes())",
    "index": "tensor[indices]",
    "nonzero_static": "nonzero()",
    "resize": "resize_ or reshape",
    "resize_as": "resize_as_ or reshape_as",
    "slice_inverse": "clone, and y[start:end] = values",
    "storage_type": "untyped_storage()",
    "volatile": "torch.no_grad()",
    **dict.fromkeys(("geqrf", "orgqr", "ormqr"), "torch.linalg.qr"),
    **{name: f"torch.linalg.{name}" for name in ("eig", "lstsq", "solve")},
    "symeig": "torch.linalg.eigh",
    **dict.fromkeys(("pca_lowrank", "svd_lowrank"), "torch.linalg.svd"),
    **dict.fromkeys(("frobenius_norm", "nuclear_norm"), "torch.linalg.matrix_norm"),
    **{name: f"torch.nn.{name}" for name in ("ModuleDict", "ParameterDict")},
    "Container": "torch.nn.Module",
    **dict.fromkeys(("lstm", "gru"), "torch.nn.LSTM or torch.nn.GRU"),
    **dict.fromkeys(("rnn_relu", "rnn_tanh"), "torch.nn.RNN"),
    **dict.fromkeys(("rnn_relu_cell", "rnn_tanh_cell"), "torch.nn.RNNCell"),
    **dict.fromkeys(("lstm_cell", "gru_cell"), "torch.nn.LSTMCell or torch.nn.GRUCell"),
    "convolution": "torch.nn.functional.conv2d",
    **dict.fromkeys(("grid_sampler_2d", "grid_sampler_3d"), "torch.nn.functional.grid_sample"),
    "grid_sampler": "torch.nn.functional.grid_sample",
    **{
        f"native_{name}": f"torch.nn.functional.{name}"
        for name in ("batch_norm", "channel_shuffle", "dropout", "group_norm", "layer_norm")
    },
    **{
        f"{name}_": f"torch.nn.functional.{name}(..., inplace=True)"
        for name in ("alpha_dropout", "dropout", "rrelu")
    },
    "IterDataPipe": "torch.utils.data.IterableDataset",
    "MapDataPipe": "torch.utils.data.Dataset",
    **{f"int{bits}": "torch.int8" for bits in range(1, 8)},
    **{f"uint{bits}": "torch.uint8" for bits in range(1, 8)},
    "float4_e2m1fn_x2": "torch.bfloat16",
}
# And instead of dtypes that can be named, and not used, under `convcore run`.
DTYPES = {
    "complex32": "torch.complex64",
    **{f"float8_{n}": "torch.bfloat16" for n in ("e4m3fn", "e5m2", "e4m3fnuz", "e5m2fnuz")},
    "float8_e8m0fnu": "torch.bfloat16",
}


def instead(path: str) -> str:
    """Return what to use instead of a missing name such as 'torch.geqrf'; '' if unknown."""
    name = path.rpartition(".")[2]
    return _INSTEAD.get(name) or DTYPES.get(name, "")


# Names of NumPy's, Keras' and early PyTorch's that PyTorch has under another, or not at all.
_OF_OTHERS = {
    "array": "torch.tensor",
    "astype": "x.to(dtype)",
    "copy": "x.clone()",
    "expand_dims": "torch.unsqueeze",
    "gels": "torch.linalg.lstsq",
    "invert": "torch.bitwise_not",
    "nn.AveragePooling2D": "nn.AvgPool2d",
    "nn.BatchNormalization": "nn.BatchNorm2d",
    "nn.Dense": "nn.Linear",
    "nn.GlobalAveragePooling2D": "nn.AdaptiveAvgPool2d(1)",
    "nn.Input": "nothing: a net takes its input when it is called",
    "nn.MaxPooling2D": "nn.MaxPool2d",
    "pad": "nn.functional.pad",
    "repeat": "x.repeat for whole tensors, torch.repeat_interleave for NumPy's repeat",
    **{"from_torch": "torch.as_tensor", "load_onnx": "torch.onnx.load"},
    "nn.DataLoader": "torch.utils.data.DataLoader",
    # Modules of PyTorch's that stand deeper, and torchvision's.
    **{"dataloader": "utils.data", "functional": "nn.functional", "init": "nn.init"},
    "lr_scheduler": "optim.lr_scheduler",
    **dict.fromkeys(("layers", "loss", "losses", "modules"), "nn"),
    **dict.fromkeys(("optimizer", "optimizers"), "optim"),
    **dict.fromkeys(
        ("datasets", "transforms", "vision"),
        "torchvision, which runs on convcore under `convcore run`: docs/howto/tools.rst",
    ),
}


def of_others(path: str) -> str:
    """Return what to use instead of a name of NumPy's or Keras', or ''."""
    use = _OF_OTHERS.get(path.removeprefix("torch."), "")
    return f"use {use}" if use else ""


# Packages beside PyTorch that programs import, and what is there instead.
_PACKAGES = {
    "torchvision": "it runs on convcore without PyTorch: pip install --no-deps torchvision pillow; "
    "or take convcore.models, which has resnet18, vgg16, mobilenet_v2 and others under its names",
    "torchaudio": "read sounds with scipy.io.wavfile, and transform them with scipy.signal",
}


def instead_of_package(name: str) -> str:
    """Return what to use instead of a package beside PyTorch that is not installed, or ''."""
    return _PACKAGES.get(name.partition(".")[0], "")


@functools.lru_cache(4096)
def reason(path: str) -> str:
    """Return why a name such as 'torch.cuda.Stream' is out of scope; '' for one that is not."""
    for pattern, key in _PATTERNS:
        if fnmatch.fnmatchcase(path, pattern):
            return _REASONS[key]
    name = path.rpartition(".")[2]
    return _RARE_REASONS.get(name) or _RARE_REASONS.get(name.removesuffix("_"), "")
