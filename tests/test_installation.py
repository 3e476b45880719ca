"""What is tested is what was installed."""

from __future__ import annotations

import os
import sysconfig
from pathlib import Path

import pytest


@pytest.mark.skipif(not os.environ.get("CI"), reason="developers may test their checkout")
def test_package_is_the_installed_one_not_the_checkout():
    import convcore

    places = {Path(sysconfig.get_path(name)).resolve() for name in ("purelib", "platlib")}
    assert places & set(Path(convcore.__file__).resolve().parents)
