"""Functions of windows of images: convolution, pooling, padding, resizing, patches."""
