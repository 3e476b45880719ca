"""Communication hooks that average gradients, in their own dtype or in one of two bytes.

For `DistributedDataParallel.register_comm_hook`; the state is the process group, None for the
default one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from convcore._tensor import Tensor, dtypes
from convcore.distributed.buckets import GradBucket
from convcore.distributed.collectives import all_reduce
from convcore.distributed.group import ProcessGroup, resolve
from convcore.futures import Future

__all__ = [
    "allreduce_hook",
    "bf16_compress_hook",
    "bf16_compress_wrapper",
    "fp16_compress_hook",
    "fp16_compress_wrapper",
]

Hook = Callable[[Any, GradBucket], Future[Tensor]]


def _averaged(group: ProcessGroup | None, tensor: Tensor) -> Future[Tensor]:
    """Return the future of a tensor's mean over the processes, in place."""
    tensor.div_(resolve(group).size())
    work = all_reduce(tensor, group=group, async_op=True)
    assert work is not None
    return work.get_future().then(lambda done: done.value()[0])


def _stored(bucket: GradBucket, future: Future[Tensor]) -> Future[Tensor]:
    """Return the future of the bucket's tensor with another's values."""
    buffer = bucket.buffer()
    return future.then(lambda done: buffer.copy_(done.value()))


def allreduce_hook(process_group: ProcessGroup | None, bucket: GradBucket) -> Future[Tensor]:
    """Average a bucket, as is done without a hook."""
    return _averaged(process_group, bucket.buffer())


def fp16_compress_hook(process_group: ProcessGroup | None, bucket: GradBucket) -> Future[Tensor]:
    """Average a bucket in float16: half the bytes of float32, and sums of its precision."""
    return _stored(bucket, _averaged(process_group, bucket.buffer().to(dtypes.float16)))


def bf16_compress_hook(process_group: ProcessGroup | None, bucket: GradBucket) -> Future[Tensor]:
    """Average a bucket in bfloat16: half the bytes of float32, and sums of its precision."""
    return _stored(bucket, _averaged(process_group, bucket.buffer().to(dtypes.bfloat16)))


def _compressed(hook: Hook, dtype: Any) -> Hook:
    def wrapped(state: Any, bucket: GradBucket) -> Future[Tensor]:
        buffer = bucket.buffer()
        bucket.set_buffer(buffer.to(dtype))
        return hook(state, bucket).then(lambda done: buffer.copy_(done.value()))

    return wrapped


def fp16_compress_wrapper(hook: Hook) -> Hook:
    """Return a hook that calls another with the bucket's buffer in float16."""
    return _compressed(hook, dtypes.float16)


def bf16_compress_wrapper(hook: Hook) -> Hook:
    """Return a hook that calls another with the bucket's buffer in bfloat16."""
    return _compressed(hook, dtypes.bfloat16)
