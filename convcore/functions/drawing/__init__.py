"""Functions that draw random numbers: dropout, samples of distributions."""
