"""What is tested is what was installed."""

import os
import re
import shutil
import sysconfig
from pathlib import Path

import pytest


@pytest.mark.skipif(not os.environ.get("CI"), reason="developers may test their checkout")
def test_package_is_the_installed_one_not_the_checkout():
    import convcore

    places = {Path(sysconfig.get_path(name)).resolve() for name in ("purelib", "platlib")}
    assert places & set(Path(convcore.__file__).resolve().parents)


def test_no_test_starts_python_in_its_own_folder():
    # Without -P a child in a clone would import the source, which has no kernels.
    started = re.compile(r'sys\.executable, *("-[WX]", "\w+", *)*("-c"|"-m", "convcore")')
    for file in Path(__file__).parent.rglob("*.py"):
        found = started.search(file.read_text(encoding="utf-8"))
        assert found is None, f"{file}: {found[0]} without -P"


@pytest.mark.subprocess
def test_source_tree_without_kernels_says_what_to_do(tmp_path, run_child):
    import convcore

    package = Path(convcore.__file__).parent
    compiled = shutil.ignore_patterns("*.so", "*.pyd", "__pycache__")
    shutil.copytree(package, tmp_path / "convcore", ignore=compiled)
    run_child(
        """if True:
    import sys
    sys.path.insert(0, sys.argv[1])
    import convcore
    try:
        convcore.engine
    except ImportError as error:
        assert sys.argv[1] in str(error) and "another folder" in str(error), error
    else:
        raise AssertionError("there are no kernels, and nobody said so")
    """,
        str(tmp_path),
    )


@pytest.mark.subprocess
@pytest.mark.parametrize("lacking", ["_isa", "_restoring"])  # an attribute; a name to import
@pytest.mark.parametrize(
    "asked", ["convcore.nn", "from convcore import Tensor", "main(['plan', '1,1,4,4,1,3,1,1'])"]
)
def test_kernels_of_older_sources_say_what_to_do(lacking, asked, run_child):
    run_child(
        f"""if True:
    import sys, types
    import convcore
    from convcore.cli import main  # which loads no kernels
    name = "convcore.engine.runtime.{lacking}"
    sys.modules[name] = types.ModuleType(name)  # as it was before anything was put into it
    try:
        {asked}
    except ImportError as error:
        assert "run 'python setup.py build_ext --inplace'" in str(error), error
    else:
        raise AssertionError("the module has nothing, and nobody said so")
    """
    )
