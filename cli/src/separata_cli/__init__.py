"""The ``separata`` command."""
