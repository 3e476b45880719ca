"""Which functions autocast computes in which dtype: PyTorch's lists for the CPU.

Each table has modules of `convcore.functions` and their functions.  Functions on no list take their
operands as they come; those made of listed ones, such as a recurrent layer, follow these.
"""

from __future__ import annotations

# In the lower precision: convolutions, matrix products, and what computes its result by one.
LOWER = {
    "elementwise.activation": "prelu",
    "sequences.attention": "scaled_dot_product_attention",
    "windows.conv": "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d",
    "windows.grid_sample": "affine_grid",
    "products.matmul": "addmm baddbmm bmm linear matmul mm",
}

# Of these, those that take float32 parameters beside an input of bfloat16.
_LAYERS = "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d linear"
LAYERS = frozenset(_LAYERS.split())

# In float32: what loses too much otherwise, and what has no kernel of lower precision in PyTorch.
FLOAT32 = {
    "elementwise.complex_parts": "polar view_as_complex",
    "losses.cross_entropy": "cross_entropy nll_loss",
    "losses.ctc_loss": "ctc_loss",
    "reductions.distance": "cdist",
    "windows.grid_sample": "grid_sample",
    "losses.likelihood_loss": "poisson_nll_loss",
    "linalg.inverses": "inv inv_ex solve",
    "linalg.least_squares": "lstsq",
    "linalg.qr": "qr",
    "linalg.spectral": "eig eigh eigvals eigvalsh svd svdvals",
    "linalg.triangular": "cholesky cholesky_ex",
    "windows.local_response": "local_response_norm",
    "losses.loss": "binary_cross_entropy binary_cross_entropy_with_logits huber_loss kl_div "
    "l1_loss mse_loss smooth_l1_loss",
    "losses.margin_loss": "cosine_embedding_loss hinge_embedding_loss margin_ranking_loss "
    "triplet_margin_loss",
    "products.matrices": "cholesky cholesky_solve inverse",
    "windows.max_unpooling": "max_unpool1d max_unpool2d max_unpool3d",
    "reductions.numerics": "trace",
    "windows.pooling": "adaptive_avg_pool3d adaptive_max_pool3d avg_pool3d max_pool3d",
    "indexing.ranks": "quantile",
    "reductions.reduce": "prod",
}

# In float32 if an operand is, otherwise in the lower precision.
WIDEST = {
    "shapes.joining": "cat column_stack concat concatenate dstack hstack row_stack stack vstack"
}
