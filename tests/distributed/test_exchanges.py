"""reduce_scatter and all_to_all against what NumPy makes of the tensors of all ranks."""

import mpi
import pytest

import convcore
from convcore import distributed as dist
from convcore.distributed import ReduceOp

EXCHANGES = """
    import numpy as np, convcore as torch, convcore.distributed as dist
    from convcore.distributed import ReduceOp

    dist.init_process_group("mpi", timeout=30)
    me, n = dist.get_rank(), dist.get_world_size()

    def of(rank, rows=n):
        return np.random.default_rng(rank).integers(0, 5, (rows, 3))

    for dtype in (torch.float32, torch.int64, torch.uint8, torch.float16, torch.bool):
        each = [torch.from_numpy(of(rank)).to(dtype) for rank in range(n)]
        ranks = np.stack([one.double().numpy() for one in each])
        total = ranks.sum(0)[me]
        total = total > 0 if dtype == torch.bool else total
        x = torch.from_numpy(of(me)).to(dtype)
        part, listed = torch.ones(3, dtype=dtype), torch.ones(3, dtype=dtype)
        assert dist.reduce_scatter_tensor(part, x) is None
        work = dist.reduce_scatter(listed, list(x), async_op=True)
        assert work.wait()
        np.testing.assert_array_equal(part.double().numpy(), total)
        np.testing.assert_array_equal(listed.double().numpy(), total)
        whole, parts = torch.ones(n, 3, dtype=dtype), [torch.ones(3, dtype=dtype) for _ in range(n)]
        dist.all_to_all_single(whole, x)
        dist.all_to_all(parts, list(x))
        np.testing.assert_array_equal(whole.double().numpy(), ranks[:, me])
        np.testing.assert_array_equal([p.double().numpy() for p in parts], ranks[:, me])
    for op, name in ((ReduceOp.AVG, "mean"), (ReduceOp.MAX, "max"), (ReduceOp.PRODUCT, "prod")):
        part = torch.zeros(3)
        dist.reduce_scatter_tensor(part, torch.from_numpy(of(me)).float(), op)
        expected = getattr(np.stack([of(rank) for rank in range(n)]), name)(0)[me]
        np.testing.assert_allclose(part.numpy(), expected, rtol=1e-6)

    # Rank r sends r + k rows to rank k, none from rank 0 to itself.
    def rows(rank):
        return np.cumsum([0, *(rank + k for k in range(n))])

    def sent(rank):
        return of(rank, rows(rank)[-1])

    expected = np.concatenate([sent(r)[rows(r)[me] : rows(r)[me + 1]] for r in range(n)])
    x = torch.from_numpy(sent(me))
    sizes = [me + k for k in range(n)]
    whole = torch.ones(sum(sizes), 3, dtype=x.dtype)
    dist.all_to_all_single(whole, x, sizes, sizes)
    np.testing.assert_array_equal(whole.numpy(), expected)
    parts = [torch.ones(size, 3, dtype=x.dtype) for size in sizes]
    dist.all_to_all(parts, list(x.split(sizes)))
    np.testing.assert_array_equal(torch.cat(parts).numpy(), expected)
    print(me, "of", n)
    dist.destroy_process_group()
"""


@pytest.mark.subprocess
@pytest.mark.parametrize("ranks", [2, 3])
def test_exchanges_are_numpys(ranks, tmp_path):
    expected = [f"{rank} of {ranks}" for rank in range(ranks)]
    assert mpi.run_in_shared(EXCHANGES, ranks, tmp_path) == expected


def test_one_process_keeps_what_it_has(alone):
    x = convcore.arange(3.0)
    outputs = [convcore.zeros(3) for _ in range(4)]
    dist.reduce_scatter_tensor(outputs[0], x)
    dist.reduce_scatter(outputs[1], [x], ReduceOp.AVG)
    dist.all_to_all([outputs[2]], [x])
    dist.all_to_all_single(outputs[3], x, [3], [3])
    assert all(output.tolist() == [0, 1, 2] for output in outputs)


@pytest.mark.parametrize(
    ("wrong", "error", "says"),
    [
        (lambda x: dist.reduce_scatter(x, x), TypeError, "input_list must be a list"),
        (lambda x: dist.reduce_scatter(x, []), ValueError, "input_list must have 1 tensors"),
        (lambda x: dist.reduce_scatter(x, [x[:1]]), ValueError, "as output is, but is of"),
        (lambda x: dist.reduce_scatter(1, [x]), TypeError, "output must be a Tensor"),
        (lambda x: dist.reduce_scatter(x, [x], "sum"), TypeError, "op must be a ReduceOp"),
        (lambda x: dist.reduce_scatter_tensor(x, x[:1]), ValueError, "input must have 1 times"),
        (lambda x: dist.all_to_all([x], []), ValueError, "input_tensor_list must have 1"),
        (lambda x: dist.all_to_all(x, [x]), TypeError, "output_tensor_list must be a list"),
        (lambda x: dist.all_to_all_single(x, x.long()), ValueError, "output must be of"),
        (lambda x: dist.all_to_all_single(x, x, [1]), ValueError, "output_split_sizes must be 1"),
        (lambda x: dist.all_to_all_single(x, x, None, [1, 1]), ValueError, "input_split_sizes"),
    ],
)
def test_wrong_arguments_are_named(alone, wrong, error, says):
    x = convcore.ones(2)
    with pytest.raises(error, match=says):
        wrong(x)
    assert x.tolist() == [1, 1]
