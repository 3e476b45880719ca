"""PyInstaller's hook collects the modules that are imported by name, and the compiled ones."""

import runpy
import sys
import types
from pathlib import Path

from convcore._pyinstaller import get_hook_dirs

CHECKOUT = Path(__file__).resolve().parents[1]


def test_the_hook_asks_for_all_modules_and_data(monkeypatch):
    hooks = types.ModuleType("PyInstaller.utils.hooks")
    hooks.collect_submodules = lambda name, on_error: [f"modules of {name}"]
    hooks.collect_data_files = lambda name: [f"data of {name}"]
    monkeypatch.setitem(sys.modules, "PyInstaller.utils.hooks", hooks)
    for name in ("PyInstaller", "PyInstaller.utils"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    (folder,) = get_hook_dirs()
    found = runpy.run_path(str(Path(folder) / "hook-convcore.py"))
    assert found["hiddenimports"] == ["modules of convcore"]
    assert found["datas"] == ["data of convcore"]


def test_pyinstaller_finds_the_hook():
    text = (CHECKOUT / "pyproject.toml").read_text(encoding="utf-8")
    assert 'hook-dirs = "convcore._pyinstaller:get_hook_dirs"' in text
