"""What the DataLoader is made of; tasks go to workers, answers come back.

collate.py makes batches of samples and fetch.py samples of indices; worker.py is what a worker
does, processes.py and threads.py what it is; handover.py moves batches between processes;
arguments.py checks a loader's arguments.
"""

MP_STATUS_CHECK_INTERVAL = 5.0  # seconds until somebody looks whether the others are still there
