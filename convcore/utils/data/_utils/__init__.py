"""Parts of the DataLoader: workers, collation, position; tasks go to workers, batches come back.

collate.py makes batches of samples and fetch.py samples of indices; worker.py is what a worker
does, processes.py and threads.py what it is; handover.py moves batches between processes;
arguments.py checks a loader's arguments.
"""

MP_STATUS_CHECK_INTERVAL = 5.0  # seconds until somebody looks whether the others are still there
