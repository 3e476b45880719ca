"""What is said at the end of a run about the tests that did not run."""

import pytest
from skips import LONG, NOTHING, command_of, plain_reason, summary


@pytest.mark.parametrize(
    ("reason", "command"),
    [
        (
            "could not import 'torch': No module named 'torch'",
            "pip install torch==2.13.0 && pytest",
        ),
        ("could not import 'sklearn.datasets'", "pip install scikit-learn && pytest"),
        (
            "could not import 'pytorch_grad_cam'",
            "pip install --no-deps grad-cam ttach tqdm && pytest",
        ),
        ("captum is not installed", "pip install --no-deps captum tqdm && pytest"),
        ("torchvision is not installed", "pip install --no-deps torchvision pillow && pytest"),
        ("needs PyTorch", "pip install torch==2.13.0 && pytest"),
        ("torchsummary is not installed", "pip install torchsummary && pytest"),
        ("root may write anything", "pytest, not as root"),
        (LONG, "pytest --long-cases=100"),
        ("no bias is a bias", NOTHING),
    ],
)
def test_each_reason_has_its_command(reason, command):
    assert command_of(reason) == command


def test_reason_is_without_pytests_words():
    text = "Skipped: could not import 'torch': No module named 'torch'"
    assert plain_reason(text) == "could not import 'torch'"
    assert plain_reason("this system has no fork") == "this system has no fork"


def test_tests_that_did_not_run_are_counted_by_command_and_reason():
    torch, plain = "Skipped: could not import 'torch': it is not there", "Skipped: nobody persists"
    assert list(summary([plain, torch, "needs PyTorch", torch])) == [
        "     3  pip install torch==2.13.0 && pytest",
        "             2  could not import 'torch'",
        "             1  needs PyTorch",
        f"     1  {NOTHING}",
        "             1  nobody persists",
    ]
    assert list(summary([])) == []


@pytest.mark.parametrize("quiet", [False, True])
@pytest.mark.parametrize("tier", ["all", "quick"])
def test_a_run_ends_with_them(tier, quiet, pytestconfig, capsys):
    class Report:
        longrepr = ("test_a.py", 3, "Skipped: needs PyTorch")

    class Item:
        def get_closest_marker(self, name):
            return name == "long" or None

    class Reporter:
        class config:
            getoption = {"tier": tier}.get

        stats = {} if quiet else {"skipped": [Report()], "deselected": [Item()]}
        section = staticmethod(lambda title, sep: print(title))
        write_line = staticmethod(print)

    (hook,) = (
        one.plugin
        for one in pytestconfig.hook.pytest_terminal_summary.get_hookimpls()
        if str(getattr(one.plugin, "__file__", "")).endswith("conftest.py")
    )
    hook.pytest_terminal_summary(Reporter())
    printed = capsys.readouterr().out
    assert ("pip install torch" in printed) != quiet
    assert ("--long-cases" in printed) == (tier == "all" and not quiet)
    assert ("pytest --all" in printed) == (tier == "quick")
    assert ("left out: 1 long" in printed) == (tier == "quick" and not quiet)
