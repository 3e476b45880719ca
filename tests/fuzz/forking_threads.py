"""Fork while other threads are anywhere in the library: each child must go on.

    python tests/fuzz/forking_threads.py --count=2000   threads in public functions
    python tests/fuzz/forking_threads.py --imports=200  threads that use a name for the first time

Each child does what the threads were doing, and is killed if it takes too long.
"""

import argparse
import copy
import faulthandler
import io
import os
import random
import signal
import subprocess
import sys
import threading
import time
import warnings

SECONDS = 60  # which no child takes that does not hang

# First uses of names, each of which loads modules.
FIRST_USES = (
    "convcore.ones(2).sum()",
    "convcore.nn.Conv2d(1, 1, 3)(convcore.ones(1, 1, 5, 5)).sum()",
    "convcore.get_num_threads()",
    "convcore.rand(3)",
    "convcore.save({}, __import__('io').BytesIO())",
    "convcore.utils.data.DataLoader([1])",
    "convcore.linalg.norm(convcore.ones(2))",
    "convcore.inspection",
)


def entry_points():
    """Return public functions, which threads call again and again, by name."""
    import convcore
    from convcore import nn

    own = convcore.Generator()
    conv = nn.Conv2d(3, 4, 3)
    image, weight = convcore.rand(1, 3, 9, 9), convcore.rand(4, 3, requires_grad=True)
    fast = convcore.optimize_for_inference(nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU()), image)
    prepacked = convcore.engine.PrepackedConvolution(conv.weight.detach().numpy())
    written = io.BytesIO()
    convcore.save({"a": image}, written)

    def backward():
        (weight * 2).sum().backward()

    def hooks():
        weight.register_hook(lambda grad: None).remove()

    return {
        "rand": lambda: convcore.rand(50_000),
        "randn": lambda: convcore.randn(20_000, generator=own),
        "gamma": lambda: convcore.distributions.Gamma(convcore.ones(50), 1.0).sample(),
        "shuffle": lambda: convcore.randperm(2000),
        "manual_seed": lambda: convcore.manual_seed(3),
        "numpy": lambda: __import__("numpy").random.standard_normal(50_000),
        "conv": lambda: conv(image).sum().backward(),
        "matmul": lambda: convcore.ones(90, 90) @ convcore.ones(90, 90),
        "pool": lambda: nn.functional.avg_pool2d(image, random.choice([2, 3, 4])),
        "optimized": lambda: fast(image[..., : random.randint(4, 9)]),
        "optimize": lambda: convcore.optimize_for_inference(nn.Sequential(conv), image)(image),
        "prepacked": lambda: (prepacked.forget(), prepacked(image.numpy())),
        "backward": backward,
        "hooks": hooks,
        "copy": lambda: copy.deepcopy(conv),
        "save": lambda: convcore.save(conv.state_dict(), io.BytesIO()),
        "load": lambda: convcore.load(io.BytesIO(written.getvalue())),
    }


def forked(compute):
    """Return the exit status of a child that computes; one that hangs says where, and is killed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads: our subject
        child = os.fork()
    if child == 0:
        faulthandler.enable()
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        faulthandler.dump_traceback_later(SECONDS - 5)
        signal.alarm(SECONDS)
        status = 1
        try:
            compute()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def in_functions(count, seed):
    """Fork at random moments of threads that call public functions."""
    draws = random.Random(seed)
    calls, stop = entry_points(), threading.Event()

    def work(names):
        while not stop.is_set():
            calls[draws.choice(names)]()

    def compute():
        for call in calls.values():
            call()

    names = list(calls)
    threads = [threading.Thread(target=work, args=(names[i::4],)) for i in range(4)]
    for thread in threads:
        thread.start()
    failed, longest = 0, 0.0
    try:
        for _ in range(count):
            time.sleep(draws.random() * 0.01)
            start = time.monotonic()
            failed += forked(compute) != 0
            longest = max(longest, time.monotonic() - start)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    print(f"{count} forks, {failed} failed, longest {longest:.2f} s", flush=True)
    return failed


def in_imports(count, seed):
    """Fork at random moments of a thread's first use of a name, each in a new process."""
    draws, failed = random.Random(seed), 0
    for number in range(count):
        use, other = FIRST_USES[number % len(FIRST_USES)], draws.choice(FIRST_USES)
        delay = draws.random() * 0.4
        command = [sys.executable, __file__, "--use", use, "--other", other, "--delay", str(delay)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=2 * SECONDS)
        if done.returncode:
            failed += 1
            print(f"{use}, then {other}, after {delay:.3f} s\n{done.stdout}{done.stderr}")
    print(f"{count} imports, {failed} failed", flush=True)
    return failed


def one_import(use, other, delay):
    import convcore

    thread = threading.Thread(target=eval, args=(use, {"convcore": convcore}))
    thread.start()
    time.sleep(delay)

    def compute():
        for each in (use, other):
            eval(each, {"convcore": convcore})

    status = forked(compute)
    thread.join()
    return status


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=0)
    parser.add_argument("--imports", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--use")
    parser.add_argument("--other")
    parser.add_argument("--delay", type=float)
    given = parser.parse_args()
    if given.use:
        return one_import(given.use, given.other, given.delay)
    failed = in_functions(given.count, given.seed) if given.count else 0
    return failed + (in_imports(given.imports, given.seed) if given.imports else 0)


if __name__ == "__main__":
    sys.exit(min(main(), 1))
