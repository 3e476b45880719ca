"""A private name of torch.backends that programs use to set its switches."""

import contextlib

__allow_nonbracketed_mutation = contextlib.nullcontext
