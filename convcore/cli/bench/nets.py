"""``convcore bench`` on whole nets and on small operations."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from convcore.cli.bench.options import (
    OVERHEAD,
    command_line,
    console_of,
    environment_of,
    machine_now,
    peers_of,
    refuse,
    require_drawable,
    require_folders,
    rounds_of,
    suites_of,
)
from convcore.cli.errors import UsageError
from convcore.cli.machine import BFLOAT16_FLAGS, cpu_flags, cpu_name

if TYPE_CHECKING:
    from rich.console import Console

    from convcore.bench.net_files import FileNet
    from convcore.bench.nets import Effort, Net, NetCell
    from convcore.bench.overhead import Cost
    from convcore.bench.progress import Step

# Options that a net or a small operation has no use for.
_OF_LAYERS = ("csv", "compare", "strict", "algorithm", "passes", "formats", "dtypes", "seed")


def run(arguments: argparse.Namespace) -> int:
    """Time whole nets; return 1 if a result was wrong or, if asked, a limit not kept."""
    from convcore.bench.progress import follow
    from convcore.bench.promises import net_promises
    from convcore.bench.report import print_nets, print_promises

    if arguments.suite or arguments.layer:
        raise UsageError("--nets measures whole nets, not layers: give it without --suite, --layer")
    refuse(arguments, "--nets", *_OF_LAYERS)
    require_folders(arguments, "json", "plot", "page")
    require_drawable(arguments.plot, arguments.page)
    effort = _effort(arguments)
    peers = effort.peers
    console = console_of(80 + 50 * len(peers))
    for line in _announcements(effort):
        console.print(line)
    cells: list[NetCell] = []
    saved: list[str] = []
    try:
        follow(_steps(arguments, effort, cells, console))
    finally:  # after Ctrl-C too, and before what nobody may read any longer
        if cells:
            try:
                saved = list(_save(arguments, cells, peers))
            finally:  # on a full disk too
                print_nets(console, cells, peers, effort.rounds)
    found = net_promises(cells, peers)
    print_promises(console, found)
    for line in saved:
        console.print(line, markup=False)
    broken = arguments.check and not all(promise.kept for promise in found)
    return 1 if broken or any(cell.wrong for cell in cells) else 0


def _effort(arguments: argparse.Namespace) -> Effort:
    """Return what is measured, and how long it takes."""
    from convcore.bench.nets import PEERS, Effort
    from convcore.bench.peers import BFLOAT16
    from convcore.engine.runtime.cpus import cpu_limit

    peers = tuple(peer for peer in peers_of(arguments.peers) if peer in PEERS)
    if arguments.precision == "bf16":
        added = [peer for peer in BFLOAT16 if peer != "torch_bfloat16" or "torch" in peers]
        peers = tuple(dict.fromkeys((*peers, *added)))
    for peer in BFLOAT16:
        if peer in peers:
            _require_bfloat16(arguments.isa, peer)
    if arguments.plot and "torch" not in peers:
        raise UsageError("--plot: speeds are drawn over PyTorch's, so torch has to be a peer")
    threads = arguments.threads or (cpu_limit(),)
    return Effort(_nets(arguments), peers, threads, rounds_of(arguments), arguments.compiled)


def _require_bfloat16(isa: str, peer: str) -> None:
    """Raise unless the processor computes in bfloat16, and is let."""
    flags = sorted(cpu_flags() & BFLOAT16_FLAGS)
    if isa != "native":
        raise UsageError(f"{peer} needs --isa native; {isa} has no bfloat16")
    if not flags:
        raise UsageError(
            f"{peer}: this processor has no bfloat16 arithmetic (none of "
            f"{', '.join(sorted(BFLOAT16_FLAGS))}), so it would only be slower than float32"
        )


def _announcements(effort: Effort) -> Iterator[str]:
    """Yield the lines that are printed before anything runs."""
    from convcore.bench.nets import TASKS
    from convcore.bench.progress import about, plural

    if "torch_bfloat16" in effort.peers:
        flags = " ".join(sorted(cpu_flags() & BFLOAT16_FLAGS))
        yield (
            "PyTorch bfloat16 is the same net under autocast('cpu', bfloat16), its weights float32 "
            f"and rounded in every call; this processor has {flags}. All others compute in float32."
        )
    if "convcore_bfloat16" in effort.peers:
        yield (
            "convcore bfloat16 multiplies in bfloat16 where that is faster: in training the faster "
            "of two ways, all tensors float32 (backends.conv.fp32_precision = 'bf16') or "
            "autocast('cpu', bfloat16); in inference what lies between layers is bfloat16 "
            "(optimize_for_inference(net, precision='bf16'))."
        )
    nets = ", ".join(net.name for net in effort.nets)
    cells = [(net, task) for net in effort.nets for task in TASKS if effort.variants(net, task)]
    tasks = plural(len({task for _, task in cells}), "task")
    rounds = plural(effort.rounds, "round")
    yield f"{nets}: {tasks}, {rounds} each: {about(effort.whole)}."


def _nets(arguments: argparse.Namespace) -> Sequence[Net | FileNet]:
    """Return the nets asked for; all of them if none is named."""
    from convcore.bench.nets import NETS, net_named

    try:
        return [net_named(name) for name in arguments.nets] or list(NETS)
    except ValueError as error:
        raise UsageError(f"--nets: {error}") from None


def _steps(
    arguments: argparse.Namespace, effort: Effort, cells: list[NetCell], console: Console
) -> Iterator[Step]:
    """Measure on each number of threads; print each net's task as it is done, yield progress."""
    from convcore.bench.nets import measure
    from convcore.bench.report import print_net

    printed = 0
    for threads in effort.threads:
        for step in measure(environment_of(arguments, threads), threads, effort, cells):
            for cell in cells[printed:]:
                print_net(console, cell)
            printed = len(cells)
            yield step
    for cell in cells[printed:]:
        print_net(console, cell)


def _save(
    arguments: argparse.Namespace, cells: Sequence[NetCell], peers: Sequence[str]
) -> Iterator[str]:
    """Save what was asked for; yield a line about each."""
    from convcore.bench.page import as_nets_page

    command = command_line(arguments)
    if arguments.json:
        save_json(arguments, [cell.as_data() for cell in cells])
        yield f"Saved to {arguments.json}"
    if arguments.plot:
        yield _draw(arguments.plot, cells, peers)[1]
    if arguments.page:
        picture = arguments.page.with_suffix(".svg")
        drawn, said = _draw(picture, cells, peers)
        name = picture.name if drawn else ""
        text = as_nets_page(cells, peers, machine_now(), command, name)
        arguments.page.write_text(text, encoding="utf-8")
        yield said
        yield f"Saved to {arguments.page}"


def _draw(file: Path, cells: Sequence[NetCell], peers: Sequence[str]) -> tuple[bool, str]:
    """Draw the chart; return whether there was anything to draw, and a line about it."""
    from convcore.bench.nets_chart import save_nets_chart

    try:
        save_nets_chart(file, cells, peers)
    except ValueError as error:
        return False, f"No chart: {error}"
    return True, f"Saved to {file}"


def save_json(arguments: argparse.Namespace, measured: list[dict[str, Any]]) -> None:
    """Save what was measured, on what and by which command."""
    data = {"command": command_line(arguments), "machine": machine_now(), "measured": measured}
    arguments.json.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def run_overhead(arguments: argparse.Namespace) -> int:
    """Time small operations, by which the cost of a call shows; return 1 if a result was wrong."""
    from convcore.bench import overhead, report
    from convcore.bench.progress import Step, about, follow, plural
    from convcore.bench.results import Outcome

    if suites_of(arguments) != (OVERHEAD,) or arguments.layer:
        raise UsageError("--suite overhead measures operations, not layers: give it alone")
    refuse(arguments, "--suite overhead", *_OF_LAYERS, "plot", "page", "threads")
    require_folders(arguments, "json")
    peers = tuple(peer for peer in peers_of(arguments.peers) if peer in overhead.PEERS)
    console, rounds = console_of(), rounds_of(arguments)
    costs: list[Cost] = []
    outcome = Outcome()
    whole = overhead.seconds_of(peers, rounds)
    operations = plural(len(overhead.OPERATIONS), "operation")
    console.print(f"{operations}, {plural(rounds, 'round')} each: {about(whole)}.")

    def steps() -> Iterator[Step]:
        given = (environment_of(arguments, 1), peers, rounds)
        for cost in overhead.measure(*given, outcome.workers):
            costs.append(cost)
            done = len(costs) / len(overhead.OPERATIONS)
            yield Step(f"timed {cost.operation.name}", done, (1 - done) * whole)

    try:
        follow(steps())
    finally:  # after Ctrl-C too
        if costs:
            if arguments.json:
                save_json(arguments, [cost.as_data() for cost in costs])
            report.print_workers(console, outcome, cpu_name())
            report.print_costs(console, costs, peers)
    return 1 if any(cost.wrong for cost in costs) else 0
