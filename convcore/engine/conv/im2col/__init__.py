"""im2col convolutions: patches are copied to columns, multiplied by BLAS; col2im adds them back."""
