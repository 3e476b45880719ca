"""Files that hold tensors by name, and nothing else: safetensors and NumPy's npz.

- ``naming.py``: what such a file may hold, and tied weights, which these formats do not know;
- ``safetensors.py``, ``npz.py``: a format each, with `write`, `read` and `read_metadata`.
"""
