"""Normalisation of activations: batch, instance, layer and group norm, softmax."""
