"""Layers of sequences: attention, embedding, recurrent nets."""
