"""Whole nets, trained and run, beside the libraries that can do the same.

Which nets there are is in catalogue.py, what is done with them in tasks.py; measure.py has the
workers take turns; report.py shows what came of it.
"""
