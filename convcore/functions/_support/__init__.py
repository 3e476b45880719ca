"""What the families of functions share: checks, kernel dispatch, axes, in-place forms."""
