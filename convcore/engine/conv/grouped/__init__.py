"""Convolutions of few channels a group."""
