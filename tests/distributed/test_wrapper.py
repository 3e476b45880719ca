"""What DistributedDataParallel wraps, and what it is asked for: two ranks against one process."""

import mpi
import pytest

import convcore
from convcore import distributed, nn
from convcore.distributed.algorithms.ddp_comm_hooks import default_hooks

pytestmark = pytest.mark.subprocess

PRELUDE = """
    import contextlib, copy, dataclasses, importlib.util, pickle, warnings, weakref
    import numpy as np, convcore as torch, convcore.distributed as dist
    from convcore import nn
    from convcore.nn.parallel import DistributedDataParallel as DDP
    from convcore.distributed import buckets
    from convcore.distributed.algorithms.ddp_comm_hooks import default_hooks
    from convcore.utils.checkpoint import checkpoint
    F = nn.functional

    dist.init_process_group("mpi", timeout=30)
    me, n = dist.get_rank(), dist.get_world_size()

    def digests(net):
        own = [p.grad.numpy().tobytes() for p in net.parameters() if p.grad is not None]
        found = [None] * n
        dist.all_gather_object(found, own)
        return found

    def close(net, reference, tolerance=2e-4):
        for (name, p), q in zip(net.named_parameters(), reference.parameters()):
            assert (p.grad is None) == (q.grad is None), name
            if q.grad is not None:
                np.testing.assert_allclose(p.grad, q.grad, tolerance, tolerance / 100, err_msg=name)
                assert p.grad.dtype == q.grad.dtype and p.grad.stride() == q.grad.stride(), name
        found = digests(net)
        assert all(one == found[0] for one in found)  # bit for bit

    def raises(kind, text, function, *arguments):
        try:
            function(*arguments)
        except kind as error:
            assert text in str(error), error
        else:
            raise AssertionError(text)

    torch.manual_seed(5)
    x, y = torch.randn(4 * n, 3, 6, 6), torch.randn(4 * n, 5)
    own = slice(4 * me, 4 * me + 4)
"""

WRAPPED = """
    @dataclasses.dataclass
    class Output:
        scores: object

    def same(y):
        return y

    class Net(nn.Module):
        def __init__(self, checkpointed=False, twice=False, returns=same):
            super().__init__()
            self.conv, self.norm = nn.Conv2d(3, 8, 3), nn.GroupNorm(2, 8)
            self.middle = nn.Linear(8, 8)
            self.spare, self.head = nn.Linear(8, 2), nn.Linear(8, 5)
            self.options = checkpointed, twice, returns
        def body(self, x):
            return F.relu(self.norm(self.conv(x))).mean((2, 3))
        def forward(self, x, spare=False):
            checkpointed, twice, returns = self.options
            x = checkpoint(self.body, x, use_reentrant=False) if checkpointed else self.body(x)
            x = self.middle(F.relu(self.middle(x))) if twice else self.middle(x)
            return returns(self.spare(x) if spare else self.head(x))

    def compare(wrapped, options=None, context=contextlib.nullcontext, of=lambda y: y, frozen=(),
                set_to_none=True, tolerance=2e-4, late=False, hook=None, channels_last=False):
        net = wrapped()
        if channels_last:
            net = net.to(memory_format=torch.channels_last)
        def freeze():
            for name in frozen:
                getattr(net, name).requires_grad_(False)
        if not late:
            freeze()
        ddp = DDP(net, bucket_cap_mb=4e-4, **({"find_unused_parameters": True} | (options or {})))
        if hook:
            ddp.register_comm_hook(None, hook)
        reference = copy.deepcopy(net)
        if late:
            freeze()
            for name in frozen:
                getattr(reference, name).requires_grad_(False)
        for step in range(4):
            ddp.zero_grad(set_to_none=set_to_none)
            reference.zero_grad(set_to_none=set_to_none)
            with context():
                loss = F.mse_loss(of(ddp(x[own])), y[own])
                whole = F.mse_loss(of(reference(x)), y)
            loss.backward()
            whole.backward()
            close(net, reference, tolerance)
        assert len(ddp._reducer.buckets) > 1
        return ddp

    def halves():
        return torch.autocast("cpu", dtype=torch.bfloat16)

    torch.manual_seed(1)
    compare(Net)
    # Large gradients are reduced where they are.
    small, buckets.LARGE = buckets.LARGE, 500
    compare(Net)
    compare(Net, set_to_none=False)
    compare(Net, channels_last=True)
    compare(Net, {"gradient_as_bucket_view": True}, set_to_none=False)
    compare(Net, {"gradient_as_bucket_view": True}, channels_last=True)
    compare(Net, hook=default_hooks.allreduce_hook)
    ddp = compare(Net)
    kept = ddp.module.conv.weight.grad
    ddp.module.conv.weight.grad = kept.permute(1, 0, 2, 3).clone().permute(1, 0, 2, 3)
    with ddp.no_sync():
        ddp(x[own]).sum().backward()
    ddp(x[own]).sum().backward()
    found = digests(ddp)
    assert all(one == found[0] for one in found)
    half = DDP(nn.Linear(20, 20).half())
    half(x[own].flatten(1)[:, :20].half()).sum().backward()
    assert half.module.weight.grad.isfinite().all()
    buckets.LARGE = small
    compare(Net, {"static_graph": True, "find_unused_parameters": False})
    compare(Net, channels_last=True)
    for as_views in (False, True):
        compare(Net, {"gradient_as_bucket_view": as_views}, set_to_none=False)
        compare(Net, {"gradient_as_bucket_view": as_views}, channels_last=True)
    if importlib.util.find_spec("ml_dtypes"):
        # A sum of two halves in bfloat16 is not that of the whole.
        compare(Net, context=halves, tolerance=0.05)
        compare(Net, hook=default_hooks.bf16_compress_hook, tolerance=0.05)
        compare(Net, hook=default_hooks.bf16_compress_wrapper(default_hooks.allreduce_hook),
                tolerance=0.05)
    compare(Net, hook=default_hooks.allreduce_hook)
    compare(Net, hook=default_hooks.fp16_compress_hook, tolerance=0.01)
    compare(Net, frozen=["conv", "spare"])
    compare(Net, frozen=["conv"], late=True)
    compare(lambda: Net(checkpointed=True))
    compare(lambda: Net(twice=True))
    compare(lambda: Net(twice=True, checkpointed=True), {"static_graph": True})
    compare(lambda: Net(returns=lambda y: {"a": [y, None], "b": 3}), of=lambda out: out["a"][0])
    compare(lambda: Net(returns=Output), of=lambda out: out.scores)
    compare(lambda: Net(returns=lambda y: (y, y + 1)), of=lambda out: out[0])

    # Gradients that are views of buckets share their memory; else they are the parameters' own.
    for as_views in (False, True):
        ddp = compare(Net, {"gradient_as_bucket_view": as_views})
        bucket = ddp._reducer.buckets[0]
        assert as_views == any(np.shares_memory(p.grad.numpy(), bucket.elements)
                               for p in ddp.parameters() if p.grad is not None)

    # A wrapper that is gone takes part no longer, one that is copied or pickled goes on.
    buckets.LARGE = 500
    ddp = DDP(Net(), find_unused_parameters=True)
    for again in (lambda ddp: DDP(ddp.module, find_unused_parameters=True), copy.deepcopy,
                  lambda ddp: pickle.loads(pickle.dumps(ddp)), copy.deepcopy):
        ddp, old = again(ddp), weakref.ref(ddp)
        assert old() is None and ddp.process_group is dist.group.WORLD
        reference = copy.deepcopy(ddp.module)
        for step in range(2):
            ddp.zero_grad(), reference.zero_grad()
            F.mse_loss(ddp(x[own]), y[own]).backward()
            F.mse_loss(reference(x), y).backward()
            close(ddp.module, reference)
    buckets.LARGE = small
    raises(RuntimeError, "only the default process group", pickle.dumps, dist.new_group())

    # Wrappers that share layers take turns, the whole of the module or a part of it.
    buckets.LARGE = 500
    body = nn.Sequential(nn.Flatten(), nn.Linear(108, 3000))  # a message that takes its time
    nets = [nn.Sequential(body, nn.Linear(3000, 5)) for _ in range(2)]
    wrappers = [DDP(one) for one in (*nets, nets[0])]
    for step in range(3):
        for ddp in wrappers:
            reference = copy.deepcopy(ddp.module)
            ddp.zero_grad(), reference.zero_grad()
            F.mse_loss(ddp(x[own]), y[own]).backward()
            F.mse_loss(reference(x), y).backward()
            close(ddp.module, reference)
    # Or both take part in one pass.
    reference = copy.deepcopy(nn.ModuleList(nets))
    for step in range(3):
        for module in (*nets, reference):
            module.zero_grad()
        sum(F.mse_loss(ddp(x[own]), y[own]) for ddp in wrappers[:2]).backward()
        sum(F.mse_loss(net(x), y) for net in reference).backward()
        close(nn.ModuleList(nets), reference)
    buckets.LARGE = small

    # Names, and the hooks of the net inside, which see this rank's part.
    ddp, seen = DDP(Net(), find_unused_parameters=True), []
    assert list(ddp.state_dict()) == ["module." + name for name in ddp.module.state_dict()]
    ddp.load_state_dict(ddp.state_dict())
    ddp.module.head.register_forward_hook(lambda m, i, o: seen.append(tuple(o.shape)))
    ddp.module.head.register_full_backward_hook(lambda m, i, o: seen.append(tuple(o[0].shape)))
    ddp.module.head.bias.register_hook(lambda grad: seen.append(tuple(grad.shape)))
    ddp(x[own]).sum().backward()
    assert sorted(seen) == [(4, 5), (4, 5), (5,)], seen

    # Two losses that share parameters are one pass's gradients twice.
    class Heads(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.a, self.b, self.c = (nn.Linear(2, 2) for _ in range(4))
        def forward(self, x):
            x = self.body(x)
            return self.a(x), self.b(x), self.c(x)
    ddp = DDP(Heads())
    a, b, c = ddp(torch.ones(1, 2))
    a.sum().backward(retain_graph=True)
    raises(RuntimeError, "mark a variable ready only once, but body.", b.sum().backward)

    # Bits and errors of hooks.
    ddp = DDP(nn.Linear(2, 2))
    raises(TypeError, "must be callable, but got int", ddp.register_comm_hook, None, 1)
    ddp.register_comm_hook(None, lambda state, bucket: bucket.buffer())
    raises(RuntimeError, "only be called once", ddp.register_comm_hook, None, print)
    out = ddp(torch.ones(1, 2)).sum()
    raises(TypeError, "must return a Future, but returned Tensor", out.backward)
    ddp, buckets = DDP(nn.Linear(2, 3), dim=None), []
    def doubled(state, bucket):
        assert state == "state" and [tuple(g.shape) for g in bucket.gradients()] == [
            tuple(p.shape) for p in bucket.parameters()]
        buckets.append((bucket.index(), bucket.is_last(), bucket.buffer().numel()))
        future = torch.futures.Future()
        future.set_result(bucket.buffer() * 2)
        return future
    ddp.register_comm_hook("state", doubled)
    ddp(torch.full((1, 2), float(me + 1))).sum().backward()
    assert buckets == [(0, True, 9)], buckets
    assert ddp.module.weight.grad.eq(2.0 * (me + 1)).all()  # its own, for nothing was sent
    print(me, "done")
"""


def test_gradients_are_those_of_one_process_whatever_is_wrapped(tmp_path):
    assert mpi.run_in_shared(PRELUDE + WRAPPED, 2, tmp_path) == ["0 done", "1 done"]


@pytest.mark.parametrize("set_to_none", [True, False])
@pytest.mark.parametrize("options", [{}, {"gradient_as_bucket_view": True}])
def test_gradients_set_to_zero_between_passes_stay_so(set_to_none, options):
    class Either(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 2)

        def forward(self, x, first):
            return self.a(x) if first else self.b(x)

    distributed.init_process_group()
    try:
        net = Either()
        ddp = nn.parallel.DistributedDataParallel(net, find_unused_parameters=True, **options)
        ddp.register_comm_hook(None, default_hooks.allreduce_hook)
        for first in (True, False, True):
            loss = ddp(convcore.ones(3, 2), first).sum()
            ddp.zero_grad(set_to_none=set_to_none)  # as many programs do: after the forward pass
            loss.backward()
            used, unused = (net.a, net.b) if first else (net.b, net.a)
            assert used.weight.grad.eq(3).all()
            assert unused.weight.grad is None or unused.weight.grad.eq(0).all()
    finally:
        distributed.destroy_process_group()


UNEVEN = """
    def batches(rank):  # rank 0 has the most, then the last has; one has none
        return [[5, 3, 4, 2], [], [4, 4]][(rank - n) % 3 if n == 3 else 2 * rank]

    for options in ({}, {"dim": None}, {"find_unused_parameters": True}):
        for join in ({}, {"divide_by_initial_world_size": False}):
            torch.manual_seed(me)
            ddp = DDP(nn.Sequential(nn.Linear(3, 6), nn.BatchNorm1d(6), nn.Linear(6, 2)), **options)
            ddp.module[1].momentum = 0.0  # statistics are of parts: none is to differ
            ddp.module[1].eval()
            reference = copy.deepcopy(ddp.module)
            optimizer, plain = (torch.optim.SGD(m.parameters(), 0.1) for m in (ddp, reference))
            torch.manual_seed(7)
            data = [[torch.randn(size, 3) for size in batches(rank)] for rank in range(n)]
            with ddp.join(**join):
                for part in data[me]:
                    optimizer.zero_grad()
                    ddp(part).square().mean().backward()
                    optimizer.step()
            for step in range(4):
                parts = [one[step] for one in data if step < len(one)]
                if options.get("dim", 0) is None:
                    count = n if join == {} else len(parts)
                    loss = sum(reference(part).square().mean() for part in parts) / count
                else:
                    loss = reference(torch.cat(parts)).square().mean()
                plain.zero_grad()
                loss.backward()
                plain.step()
            for p, q in zip(ddp.module.parameters(), reference.parameters()):
                np.testing.assert_allclose(p.detach(), q.detach(), 2e-5, 1e-6)
            found = [None] * n
            dist.all_gather_object(found, [v.tolist() for v in ddp.state_dict().values()])
            assert all(one == found[0] for one in found)

    with DDP(nn.Linear(3, 2)).join(enable=False):
        pass
    ddp = DDP(nn.Linear(3, 2))
    def early():
        with ddp.join(throw_on_early_termination=True):
            for part in data[me]:
                ddp(part).sum().backward()
    raises(RuntimeError, "at least one rank that exhausted inputs", early)
    with ddp.join():  # and goes on to work
        for part in data[me]:
            ddp(part).sum().backward()
    raises(RuntimeError, "neither with shards", DDP(nn.Linear(1, 1), shards=2).join().__enter__)
    raises(RuntimeError, "nor with SyncBatchNorm", DDP(nn.SyncBatchNorm(1)).join().__enter__)
    print(me, "done")
"""


@pytest.mark.parametrize("ranks", [2, 3])
def test_uneven_numbers_of_batches_are_joined(ranks, tmp_path):
    expected = [f"{rank} done" for rank in range(ranks)]
    assert mpi.run_in_shared(PRELUDE + UNEVEN, ranks, tmp_path) == expected
