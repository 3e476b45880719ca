"""The command line: what it prints, what it refuses, what it exits with."""

import argparse
import dataclasses
import importlib.util
import json
import os
import subprocess
import sys

import pytest

import convcore
from convcore import cli
from convcore.bench.layers import parse_layer
from convcore.cli import diagnosis, machine
from convcore.cli import plan as plan_command
from convcore.cli.bench import layers as bench_layers
from convcore.cli.bench.options import command_line
from convcore.cli.diagnosis import Facts, diagnose
from convcore.engine.runtime import threads
from convcore.engine.runtime.cpus import allowed_cpus

LAYER = "2,64,56,56,64,3,1,1"
AVX512 = frozenset({"sse4_2", "avx", "avx2", "fma", "avx512f", "avx512dq", "avx512bw", "avx512vl"})
HEALTHY = Facts(kernel="SkylakeX", held=True, openmp=201511, allowed=2, flags=AVX512)


def lacking(monkeypatch, *missing):
    """Make modules look as if they were not installed."""
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *rest: None if name in missing else real(name, *rest),
    )


@pytest.mark.subprocess
def test_import_does_not_load_the_command_line():
    code = "import sys, convcore; print([m for m in sys.modules if m.startswith('convcore.cli')])"
    loaded = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True
    )
    assert loaded.stdout.strip() == "[]"


@pytest.mark.subprocess
def test_command_line_loads_no_kernel_before_a_command_needs_one():
    code = (
        "import sys, convcore.cli; print([m for m in sys.modules if m.startswith('convcore.ke')])"
    )
    loaded = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True
    )
    assert loaded.stdout.strip() == "[]"


@pytest.mark.subprocess
def test_module_runs_as_the_command():
    ran = subprocess.run(
        [sys.executable, "-P", "-m", "convcore", "plan", LAYER], capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("2,64,56,56,64,3,1,1,1,1")


def test_info_prints_what_runs_here(capsys):
    assert cli.main(["info"]) == 0
    printed = capsys.readouterr().out
    for word in (convcore.__version__, "OpenMP", "BLAS", "kernel", "instructions", "threads"):
        assert word in printed
    assert "isconfigured" in printed


def test_info_prints_the_build_that_the_kernels_report(monkeypatch, capsys):
    monkeypatch.setattr(threads, "build", lambda: (201511, True, False, "gcc 1.2.3"))
    assert cli.main(["info"]) == 0
    printed = capsys.readouterr().out
    assert "full API, this Python only, compiled by gcc 1.2.3" in printed
    assert "4.5 (201511)" in printed


@pytest.mark.subprocess
def test_info_warns_of_more_threads_than_cpus():
    # Read once, when the engine loads: a process of its own.
    asked = str(allowed_cpus() + 3)
    ran = subprocess.run(
        [sys.executable, "-P", "-m", "convcore", "info"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "OMP_NUM_THREADS": asked},
    )
    assert f"{asked} in use, {allowed_cpus()} allowed" in ran.stdout
    assert f"OMP_NUM_THREADS={asked}, but this process may use {allowed_cpus()} CPU" in ran.stdout


def test_diagnosis_is_silent_about_a_healthy_machine():
    assert diagnose(HEALTHY) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"kernel": "Haswell", "variables": {"OPENBLAS_CORETYPE": "Haswell"}},
            ("Haswell", "AVX-512", "half", "unset OPENBLAS_CORETYPE"),
        ),
        ({"kernel": "Haswell"}, ("Haswell", "newer SciPy")),
        ({"kernel": "Nehalem"}, ("Nehalem", "quarter")),
        ({"variables": {"OPENBLAS_L2_SIZE": "512"}}, ("512", "unset OPENBLAS_L2_SIZE")),
        ({"openmp": 0}, ("without OpenMP", "one thread", "rebuild")),
        ({"held": False}, ("cannot be set", "OPENBLAS_NUM_THREADS=1")),
        ({"openmp_runtimes": ("libgomp.so", "libiomp5.so")}, ("2 OpenMP", "libiomp5.so")),
        ({"busy": 2.1, "present": 2}, ("2.1 CPUs busy", "of 2", "OMP_WAIT_POLICY=passive")),
        ({"variables": {"OMP_NUM_THREADS": "8,4"}}, ("OMP_NUM_THREADS=8", "2 CPUs")),
        ({"variables": {"CONVCORE_IAS": "avx2"}}, ("CONVCORE_IAS", "did you mean CONVCORE_ISA?")),
        ({"variables": {"OMP_NUM_THREADS": "x"}}, ("OMP_NUM_THREADS=x is no number", "unset it")),
        ({"variables": {"CONVCORE_NUM_THREADS": "2"}}, ("the number of threads is OMP_NUM_T",)),
        ({"variables": {"CONVCORE_X": "1"}}, ("CONVCORE_X", "unset it; there is CONVCORE_")),
    ],
)
def test_diagnosis_names_the_trouble_and_its_remedy(change, words):
    (problem,) = diagnose(Facts(**{**vars(HEALTHY), **change}))
    assert "Mend: " in problem
    for word in words:
        assert word in problem


def test_diagnosis_judges_no_kernel_that_it_does_not_know():
    assert diagnose(Facts(**{**vars(HEALTHY), "kernel": "neoversen1"})) == []
    assert diagnose(Facts(**{**vars(HEALTHY), "kernel": "Haswell", "flags": frozenset()})) == []


@pytest.mark.parametrize("variables", [{"OMP_WAIT_POLICY": "passive"}, {"OMP_NUM_THREADS": "1"}])
def test_threads_that_do_not_spin_may_share_a_busy_machine(variables):
    assert diagnose(Facts(**{**vars(HEALTHY), "busy": 9, "variables": variables})) == []


def test_threads_of_the_own_pool_may_share_a_busy_machine_unless_told_to_spin():
    facts = {**vars(HEALTHY), "busy": 9, "own_pool": True}
    assert diagnose(Facts(**facts)) == []
    assert len(diagnose(Facts(**facts | {"variables": {"OMP_WAIT_POLICY": "ACTIVE"}}))) == 1


def test_kernel_levels_are_levels():
    assert set(diagnosis._KERNEL_LEVELS.values()) <= set(machine.LEVELS)


def test_plan_prints_geometry_and_all_maps(capsys):
    assert cli.main(["plan", LAYER]) == 0
    printed = capsys.readouterr().out
    assert "2 x 64 x 56 x 56" in printed
    assert "231,211,008" in printed  # multiply-adds: 2 * 64 * 56*56 * 64*9
    for name in ("forward: ", "input_grad: ", "weight_grad: "):
        assert name in printed


@pytest.mark.parametrize("dtype", plan_command.DTYPES)
@pytest.mark.parametrize("form", ["contiguous", "channels_last"])
def test_plan_takes_every_dtype_and_format(dtype, form, capsys):
    assert cli.main(["plan", "1,8,9,7,16,3x5,2x1,1x2,1,2", "--dtype", dtype, "--format", form]) == 0
    assert dtype in capsys.readouterr().out


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("1,2,3", ("6 to 10 fields", "got 3")),
        ("1,2,3,4,5,6,7,8,9,10,11", ("6 to 10 fields", "got 11")),
        ("1,3,a,8,8,3", ("H (input height)", "'a'")),
        ("1,3,8,8,8,3x", ("k (kernel size)", "'3x'")),
        ("1,3x3,8,8,8,3", ("C (input channels)", "'3x3'")),
        ("1,3,8,8,8,3,0", ("s (stride)", "at least 1")),
        ("1,3,8,8,8,3,1,-1", ("p (padding)", "'-1'")),
        ("1,3,8,8,8,3,1,0,1,2", ("C (input channels)", "divisible")),
        ("1,4,8,8,3,3,1,0,1,2", ("groups=2",)),
        ("1,3,8,8,8,9", ("Kernel size can't be greater",)),
        ("1,3,8,8,8,\u0663", ("k (kernel size)",)),
        ("", ("6 to 10 fields",)),
    ],
)
def test_plan_refuses_a_bad_layer_by_name(spec, words, capsys):
    assert cli.main(["plan", spec]) == 2
    said = capsys.readouterr()
    assert not said.out
    for word in words:
        assert word in said.err


def test_passes_have_an_older_name():
    for option in ("--passes", "--maps"):
        arguments = cli._parser().parse_args(["bench", option, "weight_grad,forward"])
        assert arguments.passes == ("forward", "weight_grad")


def test_layer_text_is_read_back():
    for spec in ("2,64,56,56,64,3,1,1,1,1", "1,8,9,9,8,3x5,2x1,0x2,1x2,2"):
        assert parse_layer(spec).spec == spec


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["demo"],
        ["demo", "digits", "--epochs", "0"],
        ["demo", "training", "--scale", "one"],
        ["completion"],
        ["completion", "sh"],
        ["plan"],
        ["bench", "--maps", "sideways"],
        ["bench", "--threads", "0"],
        ["bench", "--rounds", "many"],
        ["bench", "--isa", "mmx"],
        ["bench", "--dtypes", "float16"],
        ["demo", "song"],
    ],
)
def test_parser_refuses_with_exit_code_2(arguments, capsys):
    with pytest.raises(SystemExit) as refusal:
        cli.main(arguments)
    assert refusal.value.code == 2
    assert "usage: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "choices"),
    [
        ("demo", "SUBJECT is one of digits, maps, training"),
        ("completion", "shell is one of bash, zsh, fish"),
    ],
)
def test_missing_word_is_asked_for_with_its_choices(command, choices, capsys):
    with pytest.raises(SystemExit):
        cli.main([command])
    assert choices in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["bench", "--layer", "1,2"], "--layer: a layer has"),
        (["bench", "--peers", "abacus"], "'abacus' is none of"),
        (["bench", "--suite", "table,grand"], "'grand' is none of"),
        (["bench", "--suite", "overhead,tiny"], "give it alone"),
        (["bench", "--suite", "overhead", "--plot", "x.svg"], "not for --suite overhead"),
        (["bench", "--nets", "--algorithm", "im2col"], "--algorithm is not for --nets"),
        (["bench", "--nets", "--passes", "forward"], "--passes is not for --nets"),
        (["bench", "--precision", "bf16"], "--precision is for --nets"),
        (["bench", "--nets", "--plot", "x.svg", "--peers", "none"], "torch has to be a peer"),
        (["bench", "--algorithm", "im2kol"], "did you mean im2col?"),
        (["bench", "--algorithm", "winograd", "--strict"], "without Winograd"),
        (["bench", "--plot", "x.doc"], "cannot write a picture"),
        (["bench", "--compare", "/no/such/file.json"], "/no/such/file.json: No such file"),
        (["bench", "--compare", __file__], "test_cli.py"),
        (["bench", "--isa", "avx2", "--env", "keep"], "one of the two"),
        (["bench", "--json", "/no/such/directory/x.json"], "no directory"),
        (["demo", "digits", "--output", "/no/such/directory/x.png"], "no directory"),
        (["bench", "--csv", "/"], "--csv: / is a directory"),
        (["bench", "--json", "/dev/full"], "--json: /dev/full: No space left on device"),
        (["bench", "--layer", "1,99999999999,5,5,3,3"], "GiB for input, weight and output"),
        (["demo", "maps", "--output", "/"], "--output: / is a directory"),
        (["inspect", "lenet", "--output", "/"], "--output: / is a directory"),
        (["run", "/"], "'/' is a directory without a __main__.py"),
    ],
)
def test_unusable_argument_is_one_sentence(arguments, word, capsys):
    pytest.importorskip("rich")
    pytest.importorskip("sklearn")
    assert cli.main(arguments) == 2
    said = capsys.readouterr().err
    assert word in said
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["verify", "--seed", "-1"], "argument --seed: must be a whole number below 2**32"),
        (["inspect", "lenet", "--seed", "1" + 22 * "0"], "must be a whole number below 2**32"),
        (["watch", "--evry", "1", "mine.py"], "did you mean --every?"),
        (["run", "--epochs", "3", "mine.py"], "a program's own options stand after its name"),
        (["summary", "lenet", "--depth", "x"], "--depth: must be a whole number, 0 or above"),
        (["summary", "lenet", "--depth", "-1"], "--depth: must be a whole number, 0 or above"),
        (["bench", "--nets", ","], "argument --nets: must be names"),
        (["run-model", "x.onnx", "-i", "x.jpg", "--std", "1,0,1"], "must be above 0"),
        (["run-model", "x.onnx", "-i", "x.jpg", "--mean", "nan"], "must be numbers"),
        (["run-model", "x.onnx", "-i", "x.jpg", "--largest", "-3"], "must be above 0"),
        (["run-model", "x.onnx", "-i", "x.jpg", "--largest", "1,2"], "must be one number"),
    ],
)
def test_value_that_means_nothing_is_refused_before_anything_runs(arguments, word, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2
    assert word in capsys.readouterr().err


def test_a_module_that_is_not_there_is_named():
    command = [sys.executable, "-P", "-m", "convcore", "run", "-m"]
    for name in ("no_such_module", "no_such.module"):
        done = subprocess.run(
            [*command, name], capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 2
        assert done.stderr == f"convcore run: there is no module {name!r}\n"


def test_bfloat16_is_no_peer_of_layers(monkeypatch, capsys):
    pytest.importorskip("rich")
    monkeypatch.setattr("convcore.bench.peers.is_installed", lambda name: True)
    assert cli.main(["bench", "--peers", "torch,torch_bfloat16"]) == 2
    assert "torch_bfloat16 is for --nets" in capsys.readouterr().err


def test_a_page_shows_the_command_with_relative_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given = ["bench", f"--json={tmp_path}/a/x.json", "--page", str(tmp_path / "x.md"), "--quick"]
    arguments = argparse.Namespace(argv=given)
    assert command_line(arguments) == "convcore bench --json=a/x.json --page x.md --quick"


def test_peer_that_is_not_installed_is_named(monkeypatch, capsys):
    pytest.importorskip("rich")
    lacking(monkeypatch, "torch")
    assert cli.main(["bench", "--peers", "torch"]) == 2
    assert "torch is not installed\n" in capsys.readouterr().err
    lacking(monkeypatch, "openvino")
    assert cli.main(["bench", "--peers", "openvino"]) == 2
    assert "openvino is not installed (it needs openvino and onnx)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "module", "extra"),
    [
        (["bench", "--quick"], "rich", "bench"),
        (["bench", "--plot", "x.svg"], "matplotlib", "bench"),
        (["demo", "digits"], "sklearn", "demo"),
        (["demo", "maps"], "rich", "demo"),
        (["completion", "bash"], "shtab", "completion"),
        (["inspect", "lenet", "--input", "x.jpg"], "PIL", "view"),
    ],
)
def test_missing_extra_names_the_command_that_mends_it(
    arguments, module, extra, monkeypatch, capsys
):
    lacking(monkeypatch, module)
    assert cli.main(arguments) == 2
    said = capsys.readouterr().err
    assert f"pip install 'convcore[{extra}]'" in said
    assert len(said.splitlines()) == 1


def test_ctrl_c_exits_with_130(monkeypatch, capsys):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(plan_command, "describe", interrupted)
    assert cli.main(["plan", LAYER]) == 130
    assert "Interrupted" in capsys.readouterr().err


def test_bench_exits_1_and_names_the_cell_if_a_result_is_wrong(monkeypatch, tmp_path, capsys):
    pytest.importorskip("rich")
    from convcore.bench.results import Cell

    def measured(request, outcome):
        outcome.cells.append(
            Cell(
                request.layers[0],
                "forward",
                "contiguous",
                1,
                {"convcore": 4.5},
                {"convcore": [1e-3]},
            )
        )
        outcome.finished = True

    monkeypatch.setattr(bench_layers, "_measure", measured)
    file = tmp_path / "x.json"
    arguments = ["bench", "--layer", "1,2,5,5,3,3", "--peers", "numpy", "--json", str(file)]
    assert cli.main(arguments) == 1
    printed = " ".join(capsys.readouterr().out.split())
    assert "1,2,5,5,3,3, forward, contiguous, 1 thread: convcore's result is off by 4.5" in printed
    assert "WRONG: 1 of 1 cells" in printed
    assert json.loads(file.read_text())["cells"][0]["wrong"] == ["convcore"]


def bench_of_ratios(monkeypatch):
    """Return a function of ratios to NumPy that returns the command on a cell that has them."""
    from convcore.bench.results import Cell

    def bench(*ratios):
        def measured(request, outcome):
            cell = Cell(request.layers[0], "forward", "contiguous", 1, {"convcore": 1.0})
            cell.seconds = {"convcore": [1e-3] * len(ratios), "numpy": [1e-3 * r for r in ratios]}
            outcome.cells.append(cell)
            outcome.finished = True

        monkeypatch.setattr(bench_layers, "_measure", measured)
        given = ["--layer", "1,2,5,5,3,3", "--peers", "numpy"]
        return lambda *more: cli.main(["bench", *given, *more])

    return bench


def test_bench_exits_1_if_a_cell_is_slower_than_in_an_older_run(monkeypatch, tmp_path, capsys):
    pytest.importorskip("rich")
    bench, old = bench_of_ratios(monkeypatch), str(tmp_path / "old.json")
    assert bench(2.0, 2.1, 2.2)("--json", old) == 0
    assert bench(1.9, 2.0, 2.1)("--compare", old) == 0
    assert "0 are lower" in capsys.readouterr().out
    assert bench(1.5, 1.6, 1.7)("--compare", old) == 1
    printed = capsys.readouterr().out
    assert "Slower than before" in printed
    assert "1 are lower" in printed


def test_bench_that_has_nothing_to_compare_says_so(monkeypatch, tmp_path, capsys):
    pytest.importorskip("rich")
    bench, old = bench_of_ratios(monkeypatch), tmp_path / "old.json"
    assert bench(2.0)("--json", str(old)) == 0
    data = json.loads(old.read_text())
    data["cells"] = []
    old.write_text(json.dumps(data))
    assert bench(2.0)("--compare", str(old)) == 2
    assert "has no cell and peer in common" in capsys.readouterr().err


def test_bench_check_exits_1_if_a_promise_is_broken(monkeypatch, capsys):
    pytest.importorskip("rich")
    from convcore.bench import promises
    from convcore.bench.promises import Promise

    bench = bench_of_ratios(monkeypatch)(2.0)
    assert bench("--check") == 0
    assert "within their limits" in capsys.readouterr().out
    broken = [Promise("speed", "1", "2", False)]
    monkeypatch.setattr(promises, "promises", lambda *arguments: broken)
    assert bench("--check") == 1
    assert "A limit is not kept" in capsys.readouterr().out
    assert bench() == 0


def test_bench_exits_1_if_nothing_can_be_measured(monkeypatch, capsys):
    pytest.importorskip("rich")
    from convcore.bench.process import WorkerError

    def failing(request, outcome):
        raise WorkerError("convcore", "its worker ended with exit code -9")

    monkeypatch.setattr(bench_layers, "_measure", failing)
    assert cli.main(["bench", "--layer", "1,2,5,5,3,3", "--peers", "numpy"]) == 1
    said = capsys.readouterr().err
    assert said == "convcore bench: convcore: its worker ended with exit code -9\n"


def test_bench_says_what_spoils_its_numbers():
    from convcore.bench.results import Request

    layers = (parse_layer("1,2,5,5,3,3"),)
    asked = Request(layers, ("forward",), ("contiguous",), (1,), (), rounds=1, isa="avx2")
    busy, idle = (bench_layers._announcements(asked, load) for load in (1000.0, 0.0))
    assert "held to --isa avx2" in idle[-2]
    assert idle[-1] == "1 cell, 1 round each: a few seconds."
    strict = dataclasses.replace(asked, strict=True)
    assert "no Winograd" in bench_layers._announcements(strict, 0.0)[-2]
    forced = dataclasses.replace(asked, algorithm="im2col")
    assert "held to --algorithm im2col" in bench_layers._announcements(forced, 0.0)[-2]
    assert "load average 1000.0" in busy[-2]
    assert bench_layers._announcements(asked, None) == idle


def test_bench_keeps_what_was_measured_when_interrupted(monkeypatch, tmp_path, capsys):
    pytest.importorskip("rich")
    from convcore.bench.results import Cell

    def interrupted(request, outcome):
        outcome.cells.append(
            Cell(
                request.layers[0],
                "forward",
                "contiguous",
                1,
                {"convcore": 0.5},
                {"convcore": [1e-3]},
            )
        )
        raise KeyboardInterrupt

    monkeypatch.setattr(bench_layers, "_measure", interrupted)
    file = tmp_path / "x.json"
    arguments = ["bench", "--layer", "1,2,5,5,3,3", "--peers", "numpy", "--json", str(file)]
    assert cli.main(arguments) == 130
    assert "was not measured" in capsys.readouterr().out
    data = json.loads(file.read_text())
    assert not data["finished"]
    assert len(data["cells"]) == 1


@pytest.mark.parametrize("words", [["bench", "--suit", "overhead"], ["bench", "--net"]])
def test_half_an_option_starts_nothing(words, capsys):
    with pytest.raises(SystemExit) as caught:
        cli.main(words)
    assert caught.value.code == 2
    assert f"did you mean {words[1]}" in capsys.readouterr().err
