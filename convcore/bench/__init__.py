"""Benchmark of convolutions: real layers, peers in processes of their own, paired in turn.

What is measured:

``layers``     one layer's sizes, read from ``"N,C,H,W,O,k,s,p,d,g"``, and its three passes
``suites``     layers of published nets and of kinds, and sweeps of one size, as data
``nets``       whole nets, trained and run
``overhead``   small operations that PyTorch and convcore have in common

How a number comes about:

``problem``    arrays of a layer and their exact results, computed by the oracle, on disk
``peers``      what computes: convcore, PyTorch, ONNX Runtime, OpenVINO, NumPy, SciPy
``measuring``  how long a call takes, samples taken in turn, their ratios; memory and peak speed
``worker``     the process in which one peer computes and is timed
``process``    the environment that it gets, and the parent's end of it
``runner``     who is asked what, in which order, and how long it will take
``progress``   how far it is: a bar, or lines

What is made of it:

``results``    the request, what was measured, its ratios, means and growth along a sweep
``promises``   every figure that convcore is held to, beside its limit
``records``    the files that a run leaves, and the cells that have become slower since an older run
``report``     tables for a terminal
``page``       pages in Markdown
``chart``      pictures of layers
``nets_chart``  pictures of nets

Nothing here changes ``os.environ``: variables go into the copy that a child process is given.
"""
