"""Nets that only run: layers fused, weights kept as their kernels read them."""

from convcore.inference.optimized import OptimizedModule, optimize_for_inference

__all__ = ["OptimizedModule", "optimize_for_inference"]
