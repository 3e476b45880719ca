"""Max and average pooling, and max unpooling."""
