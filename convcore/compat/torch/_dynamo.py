"""PyTorch's tracer of Python code, which is not there: its marks return what they mark."""

from convcore.compat.torch.compiler import disable
from convcore.compat.torch.compiler import is_compiling as is_compiling
from convcore.compat.torch.compiler import reset as reset

mark_static = mark_dynamic = maybe_mark_dynamic = graph_break = lambda *_, **__: None
optimize = lambda *_, **__: disable()  # noqa: E731
allow_in_graph = run = disable
