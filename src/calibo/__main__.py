"""`python -m calibo`."""

import sys

from calibo.cli import main

sys.exit(main())
