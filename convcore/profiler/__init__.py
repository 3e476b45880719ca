"""PyTorch's `torch.profiler`: times of functions and of what their backward passes compute.

`convcore.inspection.profile` tells more of a net: layers, memory, multiply-adds, algorithms.
"""

from convcore import _misnamed
from convcore.profiler.averages import EventList as EventList
from convcore.profiler.profiler import ProfilerActivity as ProfilerActivity
from convcore.profiler.profiler import profile as profile
from convcore.profiler.profiler import supported_activities as supported_activities
from convcore.profiler.profiler import tensorboard_trace_handler as tensorboard_trace_handler
from convcore.profiler.recording import record_function as record_function
from convcore.profiler.scheduling import ProfilerAction as ProfilerAction
from convcore.profiler.scheduling import schedule as schedule

__all__ = [
    "ProfilerAction",
    "ProfilerActivity",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]

_misnamed.explain_names(__name__)
