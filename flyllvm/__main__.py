"""``python -m flyllvm``: the same as the command ``flyllvm``."""

import sys

from flyllvm.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
