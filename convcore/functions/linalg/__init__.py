"""Linear algebra of batches of matrices, (..., m, n): PyTorch's torch.linalg.

    norms.py            vector and matrix norms
    inverses.py         inv, solve, det, slogdet
    least_squares.py    pinv, lstsq
    triangular.py       Cholesky factors, triangular systems
    qr.py               QR factors
    spectral.py         singular values, eigenvalues, and their vectors
    vectors.py          cross products

NumPy's and SciPy's LAPACK decomposes; it has threads of its own, which `set_num_threads` does not
count.  Gradients are made of differentiable functions, and can be differentiated again.  Signs and
phases of singular vectors and eigenvectors are LAPACK's: a loss must not depend on them.
"""

from convcore.functions._support.matrix_checks import LinAlgError as LinAlgError
from convcore.functions.linalg.inverses import *
from convcore.functions.linalg.least_squares import *
from convcore.functions.linalg.norms import *
from convcore.functions.linalg.qr import *
from convcore.functions.linalg.spectral import *
from convcore.functions.linalg.triangular import *
from convcore.functions.linalg.vectors import *

__all__: list[str] = []  # convcore.linalg says what is public
