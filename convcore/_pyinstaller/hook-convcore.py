"""Modules that PyInstaller cannot see, since they are imported by name, and data files."""

from PyInstaller.utils.hooks import collect_data_files, collect_submodules

hiddenimports = collect_submodules("convcore", on_error="ignore")
datas = collect_data_files("convcore")
