"""Tiers of the test suite: the table that assigns them, and the tests of the quick run.

`pytest` alone runs the tests marked `quick`: those that no tier of `LEFT_OUT` has. Of the products
of parameters in `PRODUCTS` it runs the rows in which at most one differs from its first value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import pytest

__all__ = ["MARKERS", "assign", "summary"]


class Tier(NamedTuple):
    """A marker, and the tests that it is put on, by the start of their path or a fixture."""

    about: str
    paths: tuple[str, ...] = ()
    fixtures: frozenset[str] = frozenset()
    is_quick: bool = False


TIERS = {
    "torch": Tier("compares with PyTorch", fixtures=frozenset({"torch"}), is_quick=True),
    "subprocess": Tier(
        "starts other processes; cannot run under an emulator",
        paths=(
            "tests/multiprocessing/",
            "tests/utils/test_data_position.py::test_an_iteration_goes_on_in_another_loader",
            "tests/bench/test_nets.py::test_onnxruntime_needs_no_pytorch",
            "tests/cli/test_cli.py::test_a_module_that_is_not_there_is_named",
            "tests/compat/test_names.py::test_the_list_is_that_of_pytorch",
            "tests/functions/_support/test_scipy_special.py::test_the_first_call_loads",
            "tests/functions/test_bfloat16.py::test_without_ml_dtypes_the_extra_is_named",
            "tests/functions/products/test_matrices.py::test_decompositions_are_loaded_when_one_is",
            "tests/utils/test_data_workers.py::test_loaders_in_each_other",
            "tests/utils/test_data_workers.py::test_spawned_workers_draw_the_same",
        ),
        fixtures=frozenset({"run_child"}),
    ),
    "programs": Tier(
        "runs whole programs and other people's tools on convcore",
        paths=(
            "tests/compat/test_programs.py",
            "tests/compat/test_tools.py",
            "tests/demo/",
            "tests/test_founding_programs.py",
        ),
    ),
    "distributed": Tier(
        "runs several processes by mpiexec",
        paths=("tests/distributed/", "tests/docs/test_many_machines.py"),
    ),
    "docs": Tier("runs the site's commands, tutorials and figures", paths=("tests/docs/",)),
    "fuzz": Tier("short forms of the fuzzers", paths=("tests/fuzz/",)),
    "interpreter": Tier(
        "depends on the version of Python: pickles, threads, tracebacks, processes",
        paths=(
            "tests/autograd/test_function.py",
            "tests/cli/",
            "tests/compat/test_door.py",
            "tests/engine/runtime/",
            "tests/multiprocessing/",
            "tests/serialization/",
            "tests/test_founding_programs.py",
            "tests/test_hints.py",
            "tests/test_installation.py",
            "tests/test_overrides.py",
            "tests/utils/",
        ),
        is_quick=True,
    ),
    "lint": Tier(
        "reads the sources as a linter does; `bash .ci/run --here lint` runs it",
        paths=("tests/test_comments.py", "tests/test_layering.py"),
    ),
    "slow": Tier(
        "takes more than half a second of CPU time",
        paths=(
            "tests/amp/test_autocast_mode.py::test_checkpoints_are_recomputed_as_they_were_comp",
            "tests/amp/test_grad_scaler.py::test_scaler_equals_pytorchs",
            "tests/amp/test_training.py::test_resnet18s_gradients_are_as_near",
            "tests/autograd/test_traversal.py::test_long_chain_is_built_run_and_destroyed[",
            "tests/autograd/test_traversal.py::test_long_chain_of_functions",
            "tests/autograd/test_traversal.py::test_long_chain_of_writes_into_one_base",
            "tests/autograd/test_views.py::test_views_of_views_cost_no_more_than_views",
            "tests/bench/test_sweep.py",
            "tests/cli/test_cli.py::test_unusable_argument_is_one_sentence[arguments0-",
            "tests/compat/test_table.py::test_every_difference_is_of_a_name_that_is_here",
            "tests/engine/conv/algorithms/test_algorithms.py::test_far_dilations_are_right[1",
            "tests/engine/conv/test_real_layers.py",
            "tests/engine/layers/test_pooling_oracle.py::test_max_pool_counts_taps_beyond_a",
            "tests/engine/layers/test_pooling_oracle.py::test_what_pools_of_long_lines_need",
            "tests/functions/test_complex_refused.py::test_what_pytorch_refuses_is_refused",
            "tests/inference/test_bfloat16_plans.py::test_bits_do_not_depend_on_threads[r",
            "tests/inference/test_bfloat16_plans.py::test_models_are_near_float32",
            "tests/inference/test_bfloat16_plans.py::test_they_are_no_farther_off_than_a_net",
            "tests/inference/test_plans.py::test_bits_do_not_depend_on_the_inputs_before",
            "tests/inference/test_plans.py::test_bits_do_not_depend_on_threads[r",
            "tests/inspection/attribution/test_other_tools.py",
            "tests/inspection/profiling/test_profile.py::test_operations_equal_torchs_flop",
            "tests/inspection/test_report.py::test_mobilenet_is_below_a_megabyte",
            "tests/inspection/test_report.py::test_resnet18_is_below_a_megabyte",
            "tests/models/test_models.py::test_outputs_gradients_and_buffers_are_pytorchs[",
            "tests/models/test_models.py::test_batch_norms_of_vgg_and_unet_take_their_relus",
            "tests/models/test_models.py::test_resnet18_shows_its_maps_to_pre_hooks",
            "tests/models/test_models.py::test_resnet18_trains_as_on_pytorch",
            "tests/models/test_models.py::test_vgg_prints_as_pytorchs",
            "tests/onnx/test_conformance.py::test_nets_without_weights",
            "tests/onnx/test_conformance.py::test_operators_give_the_standards_examples",
            "tests/onnx/test_conformance.py::test_what_is_left_out_is_still_wrong",
            "tests/onnx/test_export.py::test_nets_come_back_with_the_same_bits",
            "tests/onnx/test_hooks.py::test_hooks_of_a_resnet_fire_once_a_node_and_in_order",
            "tests/onnx/test_hooks.py::test_the_last_layer_of_a_resnet_is_tuned",
            "tests/onnx/test_load.py::test_folding_and_functions_have_an_end",
            "tests/serialization/test_untrusted_files.py::test_containers_of_every_protocol",
            "tests/serialization/test_untrusted_files.py::test_deep_files_are_read_or_refused",
            "tests/serialization/test_untrusted_files.py::test_memory_is_bounded",
            "tests/serialization/test_untrusted_files.py::test_what_is_written_once_is_not",
            "tests/test_ids.py",
            "tests/test_doctests.py::test_docstring_examples_print_what_they_say[convcore.models.vgg]",
        ),
    ),
}
# Tests with the largest products of parameters: half a second of CPU time or more.
PRODUCTS = (
    "tests/engine/conv/algorithms/test_bfloat16.py::test_results_are_float32_sums_of_rounded",
    "tests/engine/conv/algorithms/test_depthwise.py::test_depthwise_",
    "tests/engine/conv/algorithms/test_indirect.py::test_passes_are_the_oracles_and_stay",
    "tests/engine/conv/test_counts.py::test_memory_keeps_its_bounds_whatever_is_forced",
    "tests/engine/conv/test_prepacked.py::test_agrees_with_the_oracle",
    "tests/engine/layers/test_elementwise.py::test_bits_do_not_depend_on_threads",
    "tests/engine/layers/test_pooling_oracle.py::test_max_pools_of_few_channels",
    "tests/engine/layers/test_reduce.py::test_sums_over_any_axes_in_any_order_of_memory",
    "tests/engine/test_matmul.py::test_products_of_few_rows_are_exact_and_the_same",
    "tests/engine/test_matmul_bfloat16.py::test_products_are_those_of_rounded_factors",
    "tests/functions/linalg/test_spectral.py::test_svd_has_its_equation_and_gradients",
    "tests/inference/test_plans.py::test_models_are_planned",
    "tests/nn/test_transformer.py::test_attention_agrees_with_pytorch",
    "tests/nn/test_transformer.py::test_transformers_agree_with_pytorch",
    "tests/onnx/test_recurrences.py::test_layers_run_for_other_batches_and_steps",
    "tests/utils/test_data_workers.py::test_bits_order_and_seeds_are_pytorchs",
)
# Tiers that the quick run leaves out as a whole.
LEFT_OUT = (*(name for name, tier in TIERS.items() if not tier.is_quick), "long")
MARKERS = {
    **{name: tier.about for name, tier in TIERS.items()},
    "quick": "what `pytest` alone runs",
    "rows": "a row of a large product of parameters, left out of the quick run",
    "long": "a seeded long form, run by --long-cases=N alone",
}


def assign(items: Iterable[pytest.Item]) -> None:
    """Mark each test with its tiers."""
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        for name, tier in TIERS.items():
            if item.nodeid.startswith(tier.paths) or fixtures & tier.fixtures:
                item.add_marker(name)
        callspec = getattr(item, "callspec", None)
        if callspec and callspec.params.get("lib") == "torch":
            item.add_marker("torch")
        if callspec and item.nodeid.startswith(PRODUCTS) and not is_first_row(item):
            item.add_marker("rows")
        elif not any(item.get_closest_marker(name) for name in LEFT_OUT):
            item.add_marker("quick")


def is_first_row(item: pytest.Item) -> bool:
    """Return whether at most one parameter of a test differs from its first value."""
    # "a, b" of one decorator is one axis; a fixture with parameters is another.
    axes = [tuple(_names(mark)) for mark in item.iter_markers("parametrize")]
    moved = {
        next((axis for axis in axes if name in axis), (name,))
        for name, index in item.callspec.indices.items()
        if index
    }
    return len(moved) <= 1


def _names(mark: pytest.Mark) -> Iterator[str]:
    names = mark.args[0] if mark.args else mark.kwargs["argnames"]
    for name in names.split(",") if isinstance(names, str) else names:
        yield name.strip()


def summary(left_out: Iterable[pytest.Item]) -> Iterator[str]:
    """Yield the last lines of a quick run: tests left out by tier, and what runs them."""
    counts = Counter()
    for item in left_out:
        if not item.get_closest_marker("quick"):  # which -k left out
            names = (*LEFT_OUT, "rows")
            counts[next(name for name in names if item.get_closest_marker(name))] += 1
    if counts:
        tiers = ", ".join(f"{count} {name}" for name, count in counts.most_common())
        yield f"left out: {tiers}"
    yield "pytest --all runs every test, pytest -m NAME those of a tier: " + ", ".join(TIERS)
