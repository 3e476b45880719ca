"""fvcore's tables of parameters."""

from fvcore.nn import parameter_count, parameter_count_table
from small_net import build

print(dict(parameter_count(build())))
print(parameter_count_table(build()))
