"""Threads, memory, memory formats and checks of arguments, for the whole engine."""
