"""The embedding layer."""

from __future__ import annotations

from typing import Any, ClassVar

from convcore._tensor import Tensor
from convcore._tensor.creation import empty
from convcore.autograd.grad_mode import no_grad
from convcore.functions.sequences.embedding import padding_row, refuse_sparse
from convcore.nn import functional, init
from convcore.nn.modules.module import Module
from convcore.nn.parameter import Parameter

__all__ = ["Embedding"]


class Embedding(Module):
    """Embedding: a learned vector for each index.

    Parameters
    ----------
    num_embeddings, embedding_dim : int
        The shape of the weight.
    padding_idx : int, optional
        A row that starts as zeros and gets no gradient; a negative one counts from the end.
    max_norm : float, optional
        Rows whose norm is larger are scaled down to it when they are looked up.
    norm_type : float
        The p of that norm.
    scale_grad_by_freq : bool
        Whether a row's gradient is divided by how often the row was looked up.
    sparse : bool
        Must be False: gradients are dense.
    device, dtype
        Of the weight.

    Attributes
    ----------
    weight : Parameter, (num_embeddings, embedding_dim)

    Raises
    ------
    AssertionError
        There is no row ``padding_idx``.
    NotImplementedError
        ``sparse`` is True.

    Examples
    --------
    >>> import convcore
    >>> Embedding(10, 3)(convcore.tensor([[1, 2], [4, 3]])).shape
    torch.Size([2, 2, 3])
    """

    _printed_values = ("num_embeddings", "embedding_dim")
    _printed_attributes = ("padding_idx", "max_norm", "norm_type", "scale_grad_by_freq")
    _printed_unless: ClassVar[dict[str, Any]] = {
        **{"padding_idx": None, "max_norm": None},
        **{"norm_type": 2, "scale_grad_by_freq": False},
    }

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        refuse_sparse(sparse)
        if padding_idx is not None:
            padding_idx = padding_row(padding_idx, num_embeddings)
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = padding_idx
        if _weight is None:
            weight = empty(num_embeddings, embedding_dim, device=device, dtype=dtype)
        elif tuple(_weight.shape) != (num_embeddings, embedding_dim):
            raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
        else:
            weight = _weight
        self.weight = Parameter(weight, requires_grad=not _freeze)
        if _weight is None:
            self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weight from the normal distribution; the padding's row is zeros."""
        init.normal_(self.weight)
        self._fill_padding_idx_with_zero()

    def _fill_padding_idx_with_zero(self) -> None:
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx].fill_(0)

    def forward(self, input: Tensor) -> Tensor:
        """Return the rows at the indices ``input``, (*input.shape, embedding_dim)."""
        return functional.embedding(
            input,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Embedding:
        """Return an embedding of a given matrix; ``freeze``: it is not trained."""
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, columns = embeddings.shape
        return cls(
            num_embeddings=rows,
            embedding_dim=columns,
            _weight=embeddings,
            _freeze=freeze,
            padding_idx=padding_idx,
            max_norm=max_norm,
            norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq,
            sparse=sparse,
        )
