"""Functions of each element: arithmetic, comparison, logic, activations, casts."""
