"""Grouped convolutions with few channels per group."""
