"""Named tuples that functions return: they are plain named tuples of their functions here."""
