"""Benchmark of convolutions: real layers, peers in processes of their own, paired in turn.

How a number comes about, a file each:

``layer``        one layer's sizes, read from ``"N,C,H,W,O,k,s,p,d,g"``
``suites``       layers of published nets and of kinds, and sweeps of one size, as data
``request``      what to measure
``environment``  the variables that workers get; the only place that knows their names
``problem``      arrays of a layer and their exact results, computed by the oracle, on disk
``peers``        what computes: convcore, PyTorch, ONNX Runtime, OpenVINO, NumPy, SciPy
``sampling``     how long a call takes: repeats, groups, median
``settling``     waiting until a process's threads have stopped spinning
``memory``       the most memory that a process has held since a moment
``peak``         the speed of a large matrix product, by which others are measured
``worker``       the process in which one peer computes and is timed
``process``      the parent's end of that process
``effort``       how long it will take
``runner``       who is asked what, in which order
``cell``         what is measured: a layer, map, format, number of threads and dtype, by peer
``operations``   small operations that PyTorch and convcore have in common
``overhead``     what they cost in each

What is made of it:

``pairing``      ratios of samples taken in turn, their quartiles, geometric means
``record``       ratios and means of a run, each side's better format; the run as plain data
``scaling``      the power of size that time follows along a sweep
``promises``     every figure that convcore is held to, beside its limit
``expected``     ratios to NumPy that hold on any machine
``compare``      which cells have become slower since an older run, beyond the noise
``text``         words and numbers as reports print them
``progress``     a bar, or lines, with the time left
``report``       tables for a terminal
``chart``        pictures
``page``         a page in Markdown
``saving``       the files that a run leaves

Nothing here changes ``os.environ``: variables go into the copy that a child process is given.
"""
