"""Which functions autocast computes in which dtype: PyTorch's lists for the CPU.

Each table has modules of `convcore.functions` and their functions.  Functions on no list take their
operands as they come; those made of listed ones, such as a recurrent layer, follow these.
"""

from __future__ import annotations

# In the lower precision: convolutions, matrix products, and what computes its result by one.
LOWER = {
    "activation": "prelu",
    "attention": "scaled_dot_product_attention",
    "conv": "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d",
    "grid_sample": "affine_grid",
    "matmul": "addmm baddbmm bmm linear matmul mm",
}

# Of these, those that take float32 parameters beside an input of bfloat16.
_LAYERS = "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d linear"
LAYERS = frozenset(_LAYERS.split())

# In float32: what loses too much otherwise, and what has no kernel of lower precision in PyTorch.
FLOAT32 = {
    "complex_parts": "polar view_as_complex",
    "cross_entropy": "cross_entropy nll_loss",
    "ctc_loss": "ctc_loss",
    "distance": "cdist",
    "grid_sample": "grid_sample",
    "likelihood_loss": "poisson_nll_loss",
    "linalg.inverses": "inv inv_ex solve",
    "linalg.least_squares": "lstsq",
    "linalg.qr": "qr",
    "linalg.spectral": "eig eigh eigvals eigvalsh svd svdvals",
    "linalg.triangular": "cholesky cholesky_ex",
    "local_response": "local_response_norm",
    "loss": "binary_cross_entropy binary_cross_entropy_with_logits huber_loss kl_div l1_loss "
    "mse_loss smooth_l1_loss",
    "margin_loss": "cosine_embedding_loss hinge_embedding_loss margin_ranking_loss "
    "triplet_margin_loss",
    "matrices": "cholesky cholesky_solve inverse",
    "max_unpooling": "max_unpool1d max_unpool2d max_unpool3d",
    "numerics": "trace",
    "pooling": "adaptive_avg_pool3d adaptive_max_pool3d avg_pool3d max_pool3d",
    "ranks": "quantile",
    "reduce": "prod",
}

# In float32 if an operand is, otherwise in the lower precision.
WIDEST = {"joining": "cat column_stack concat concatenate dstack hstack row_stack stack vstack"}
