"""Embedding layers."""

from __future__ import annotations

from typing import Any, ClassVar

from convcore._tensor import Tensor
from convcore._tensor.creation import empty
from convcore.autograd.grad_mode import no_grad
from convcore.functions.embedding import padding_row, refuse_sparse
from convcore.nn import functional, init
from convcore.nn.modules.module import Module
from convcore.nn.parameter import Parameter

__all__ = ["Embedding", "EmbeddingBag"]


class _Table(Module):
    """A matrix of rows to look up: what both layers share."""

    padding_idx: int | None
    _printed_values = ("num_embeddings", "embedding_dim")
    _printed_unless: ClassVar[dict[str, Any]] = {
        **{"padding_idx": None, "max_norm": None},
        **{"norm_type": 2, "scale_grad_by_freq": False},
    }

    def _make(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None,
        given: Tensor | None,
        freeze: bool,
        **options: Any,
    ) -> None:
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = padding_idx
        if given is None:
            weight = empty(num_embeddings, embedding_dim, **options)
        elif tuple(given.shape) != (num_embeddings, embedding_dim):
            raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
        else:
            weight = given
        self.weight = Parameter(weight, requires_grad=not freeze)
        if given is None:
            self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weight from the normal distribution; the padding's row is zeros."""
        init.normal_(self.weight)
        self._fill_padding_idx_with_zero()

    def _fill_padding_idx_with_zero(self) -> None:
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx].fill_(0)


def _check_pretrained(embeddings: Tensor) -> tuple[int, int]:
    if embeddings.dim() != 2:
        raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
    return embeddings.shape[0], embeddings.shape[1]


class Embedding(_Table):
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

    _printed_attributes = ("padding_idx", "max_norm", "norm_type", "scale_grad_by_freq")

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
        options = {"device": device, "dtype": dtype}
        self._make(num_embeddings, embedding_dim, padding_idx, _weight, _freeze, **options)

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
        rows, columns = _check_pretrained(embeddings)
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


class EmbeddingBag(_Table):
    """Sums, means or maxima of bags of embeddings, without the embeddings themselves.

    Parameters
    ----------
    num_embeddings, embedding_dim, max_norm, norm_type, scale_grad_by_freq, sparse
        As for `Embedding`.
    mode : 'sum', 'mean' or 'max'
    include_last_offset : bool
        Whether there is one offset more than there are bags; see `embedding_bag`.
    padding_idx : int, optional
        A row that counts for nothing.
    device, dtype
        Of the weight.

    Attributes
    ----------
    weight : Parameter, (num_embeddings, embedding_dim)

    Raises
    ------
    AssertionError, NotImplementedError
        As for `Embedding`.

    Examples
    --------
    >>> import convcore
    >>> EmbeddingBag(10, 3, mode="sum")(convcore.tensor([1, 2, 4]), convcore.tensor([0, 2])).shape
    torch.Size([2, 3])
    """

    _printed_attributes = ("max_norm", "norm_type", "scale_grad_by_freq", "mode", "padding_idx")

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        refuse_sparse(sparse)
        if padding_idx is not None:
            padding_idx = padding_row(padding_idx, num_embeddings, "padding_idx")
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset
        options = {"device": device, "dtype": dtype}
        self._make(num_embeddings, embedding_dim, padding_idx, _weight, False, **options)

    def forward(
        self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None
    ) -> Tensor:
        """Return (B, embedding_dim) of the bags; see `nn.functional.embedding_bag`."""
        return functional.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> EmbeddingBag:
        """Return an embedding bag of a given matrix; ``freeze``: it is not trained."""
        rows, columns = _check_pretrained(embeddings)
        made = cls(
            num_embeddings=rows,
            embedding_dim=columns,
            _weight=embeddings,
            max_norm=max_norm,
            norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq,
            mode=mode,
            sparse=sparse,
            include_last_offset=include_last_offset,
            padding_idx=padding_idx,
        )
        made.weight.requires_grad_(not freeze)
        return made
