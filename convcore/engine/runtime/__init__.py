"""What the engine stands on: threads, memory, memory formats, checks of arguments."""
