"""Reductions along axes: sums, means, variances, norms of differences, counts."""
