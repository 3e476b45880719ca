"""Commands that run programs: ``convcore run`` and ``convcore watch``."""
