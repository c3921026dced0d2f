"""`tahan console`: starts the console, says where it is, and serves it until Ctrl-C."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING

from ops import ROOT
from ops.commands.words import bounded, command
from ops.console.house import House
from ops.exits import Exit
from ops.explained import explained

if TYPE_CHECKING:
    import argparse

    from ops.commands.words import Commands
    from ops.tools import Tools

ARCHIVES = ROOT / "build" / "discarded"
HIGHEST_PORT = 65535


def add(commands: Commands, everywhere: argparse.ArgumentParser) -> None:
    """Add the command."""
    about = "pages on this machine over all of these commands, for a browser"
    parser = command(commands, everywhere, "console", about, run)
    parser.add_argument(
        "--port",
        type=bounded(HIGHEST_PORT, 0),
        default=0,
        metavar="N",
        help="of 127.0.0.1; by default any that is free",
    )
    parser.add_argument("--read-only", action="store_true", help="refuse every change")
    parser.add_argument(
        "--archives",
        default=str(ARCHIVES),
        metavar="DIR",
        help="where discarded letters are kept, whole, in files that only you can read; by default build/discarded",
    )


def run(options: argparse.Namespace, tools: Tools) -> Exit:
    """Serve the console until Ctrl-C.

    Raises:
        CommandError: the port is taken, or there is no such stack.
    """
    # Only who starts a console needs its libraries.
    from ops.console.server import Served  # noqa: PLC0415

    house = House(tools, options.stack, Path(options.archives), ROOT / "docs", options.read_only)
    with explained():
        house.stack  # noqa: B018 - whoever names a wrong one is told here
    served = Served(house, options.port)
    if options.json:
        tools.show({"address": served.guard.address, "stack": options.stack}, as_json=True)
    else:
        tools.write(served.guard.address)
        looks = ", which only looks" if options.read_only else ""
        tools.tell(f"The console of {options.stack}{looks}. Open the address above; Ctrl-C ends it.")
    served.forever()
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a second Ctrl-C ends the process, whatever it waits for
    under_way = "".join(f"\n  {title}" for title in house.deeds.stop())
    tools.tell(
        f"Stopped. Calls to AWS that are under way are waited for, some seconds; Ctrl-C once more ends at once.{under_way}"
    )
    return Exit.DONE
