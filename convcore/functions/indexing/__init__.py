"""Elements picked by index, mask or order: indexing, gather, scatter, sort, search."""
