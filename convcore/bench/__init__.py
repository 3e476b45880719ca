"""Benchmark of convolutions: real layers, peers in processes of their own, paired in turn.

How a number comes about, a file each:

``layer``        one layer's sizes, read from ``"N,C,H,W,O,k,s,p,d,g"``
``suites``       layers of published nets, as data
``environment``  the variables that workers get; the only place that knows their names
``problem``      arrays of a layer and their exact results, computed by the oracle, on disk
``peers``        what computes: convcore, PyTorch, the NumPy im2col of a notebook
``sampling``     how long a call takes: repeats, groups, median
``settling``     waiting until a process's threads have stopped spinning
``worker``       the process in which one peer computes, is checked and is timed
``process``      the parent's end of that process
``pairing``      ratios of samples taken in turn, their quartiles, geometric means
``request``      what to measure
``effort``       how long it will take
``runner``       who is asked what, in which order
``operations``   small operations that PyTorch and convcore have in common
``overhead``     what they cost in each
``report``       tables for a terminal; the same as plain data for JSON

Nothing here changes ``os.environ``: variables go into the copy that a child process is given.
"""
