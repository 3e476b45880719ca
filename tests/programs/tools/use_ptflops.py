"""ptflops' count of multiply-adds and parameters, layer by layer."""

from ptflops import get_model_complexity_info
from small_net import build

print(get_model_complexity_info(build(), (3, 16, 16), as_strings=False, backend="pytorch"))
