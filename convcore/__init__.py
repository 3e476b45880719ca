"""convcore: convolutions on NumPy and SciPy."""
__version__ = "0.1.0"
