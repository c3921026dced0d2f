"""`python -m watch`: runs the demo and a wave of traffic on the local stack, records its metrics, and draws the synthesised dashboard over them.

With `--draw` alone the picture is drawn anew from the metrics that are kept.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from infra.assembly import synthesise, template_path
from infra.stage.settings import ROOT, load_stage
from local.demo.display import Display
from local.demo.play import Run
from local.stack.running import STAGE, running_stack
from watch.picture import draw
from watch.recorder import Recorder
from watch.recording import Recording
from watch.traffic import send_waves

if TYPE_CHECKING:
    from watch.template import Template

RECORDED = Path(__file__).parent / "recorded.jsonl"
PICTURE = ROOT / "docs" / "dashboard.png"
MINUTE = 60


def record(template: Template, display: Display) -> Recording:
    """Play the demo, then a wave of traffic, and record both."""
    with running_stack(display.say) as stack, Recorder(stack, template, MINUTE * load_stage(STAGE).pace) as recorder:
        with display:
            Run(stack, display).play()
        display.say("sending waves of orders")
        send_waves(stack)
        return recorder.recording()


def main() -> int:
    """Record and draw."""
    parser = argparse.ArgumentParser(prog="python -m watch", description="The dashboard of a real local run, drawn.")
    parser.add_argument("--draw", action="store_true", help="draw what was recorded before")
    options = parser.parse_args()
    template: Template = json.loads(template_path(synthesise(STAGE), STAGE).read_text(encoding="utf-8"))
    if not options.draw:
        record(template, Display(to_stderr=True)).write(RECORDED)
    draw(template, Recording.read(RECORDED), PICTURE)
    sys.stdout.write(f"{PICTURE.relative_to(ROOT)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
