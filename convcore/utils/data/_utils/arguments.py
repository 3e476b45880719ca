"""The arguments of a DataLoader: which are allowed, and which exclude each other."""

from __future__ import annotations

from typing import Any

from convcore.utils.data.dataset import IterableDataset


def make_context(value: Any, num_workers: int) -> Any:
    """Return a multiprocessing context, of a name or as it is given, or "thread"."""
    import multiprocessing

    if num_workers == 0:
        raise ValueError(
            "multiprocessing_context can only be used with multi-process loading (num_workers > 0)"
            f", but got num_workers={num_workers}"
        )
    if isinstance(value, str):
        methods = [*multiprocessing.get_all_start_methods(), "thread"]
        if value not in methods:
            raise ValueError(
                "multiprocessing_context option should specify a valid start method in "
                f"{methods}, but got multiprocessing_context={value!r}"
            )
        return value if value == "thread" else multiprocessing.get_context(value)
    if not isinstance(value, multiprocessing.context.BaseContext):
        raise TypeError(
            "multiprocessing_context option should be a valid context object or a string "
            f"specifying the start method, but got multiprocessing_context={value}"
        )
    return value


def check_workers(
    num_workers: int, timeout: float, prefetch_factor: int | None, persistent: bool
) -> None:
    """Raise PyTorch's errors of the arguments about workers."""
    if num_workers < 0:
        raise ValueError(
            "num_workers option should be non-negative; use num_workers=0 to disable "
            "multiprocessing."
        )
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing.let num_workers > 0 "
            "to enable multiprocessing, otherwise set prefetch_factor to None."
        )
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")


def check_order(
    dataset: Any,
    shuffle: bool | None,
    sampler: Any,
    batch_sampler: Any,
    batch_size: int | None,
    drop_last: bool,
) -> None:
    """Raise PyTorch's errors of the arguments about the order of samples, and batches."""
    if isinstance(dataset, IterableDataset):
        for name, value in (
            ("shuffle", shuffle or None),
            ("sampler", sampler),
            ("batch_sampler", batch_sampler),
        ):
            if value is not None:
                raise ValueError(
                    f"DataLoader with IterableDataset: expected unspecified {name} option, but got "
                    f"{name}={value}"
                )
    if sampler is not None and shuffle:
        raise ValueError("sampler option is mutually exclusive with shuffle")
    if batch_sampler is not None and (
        batch_size != 1 or shuffle or sampler is not None or drop_last
    ):
        raise ValueError(
            "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and "
            "drop_last"
        )
    if batch_size is None and drop_last and batch_sampler is None:
        raise ValueError(
            "batch_size=None option disables auto-batching and is mutually exclusive with drop_last"
        )
