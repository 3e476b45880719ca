"""Patches are copied into columns (im2col) and multiplied by BLAS; col2im adds columns up."""
