"""`python -m local.serve` keeps the stack up for people to try, without running any situation."""

from __future__ import annotations

import sys

from local.demo.display import Display
from local.kept import keep
from local.processes.child import ProcessError
from local.processes.children import Interrupted
from local.stack.running import running_stack


def main() -> int:
    """Keep it up until we are interrupted, which is how it ends well."""
    display = Display(to_stderr=False)
    try:
        with running_stack(display.say) as stack:
            keep(stack, display.write)
    except ProcessError as error:
        display.say(str(error))
        return 1
    except (Interrupted, KeyboardInterrupt):
        display.say("everything is stopped")
    return 0


if __name__ == "__main__":
    sys.exit(main())
