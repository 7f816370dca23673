"""The command line: one module per command."""

from calibo.cli.main import main

__all__ = ["main"]
