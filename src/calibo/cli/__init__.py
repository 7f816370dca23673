"""The command line: one module a command."""

from calibo.cli.main import main

__all__ = ["main"]
