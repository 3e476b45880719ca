"""Self-check of an installed wheel: every convolution algorithm against a float64 oracle.

``convcore verify`` draws convolutions and computes each pass by each algorithm, for each
instruction set that this build and processor have.  A result is wrong if it

- lies further from the oracle (`convcore.engine.reference`) than `checks.MOST_EPS`;
- has other bits for another number of threads, in a forked child, or in a process whose BLAS was
  set up for another number of threads.

=========  ===================================================================
cases      what is convolved: drawn sizes, dtypes, memory layouts, numbers
checks     one case by every algorithm, and what may be wrong with a result
worker     a child process: cases in, results out, one line each
runner     workers for every instruction set; their results put together
=========  ===================================================================
"""
