"""A real browser, driven over the DevTools protocol by a pair of pipes: no port, no driver, no library."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome-headless-shell")
VARIABLE = "TAHAN_CHROMIUM"
MISSING = (
    "there is no Chromium on this machine: install one (`apt-get install chromium`, `brew install chromium`), or name its"
    f" program in {VARIABLE}"
)
OPTIONS = (
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-sandbox",  # as root, in a container, with pages of our own alone
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    "--no-first-run",
    "--no-proxy-server",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
)
PATIENCE = 20.0
WINDOW = (1280, 900)
KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, "/": 191}


def found() -> str | None:
    """The browser's program; None if there is none."""
    named = os.environ.get(VARIABLE)
    return named or next((path for name in NAMES if (path := shutil.which(name))), None)


class BrowserError(Exception):
    """The browser did not do what it was asked for."""


class Chromium:
    """One page of one browser.

    Attributes:
        problems: what the page's scripts threw and what its policy forbade.
    """

    def __init__(self, program: str) -> None:
        self.problems: list[str] = []
        self._cleanup = contextlib.ExitStack()
        self._program = program
        self._asked = 0
        self._session = ""
        self._rest = b""

    def __enter__(self) -> Self:
        profile = self._cleanup.enter_context(
            tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True)
        )
        for_it, self._out = os.pipe()
        self._in, from_it = os.pipe()
        script = f'exec "$@" 3<&{for_it} 4>&{from_it}'
        command = [
            "bash",
            "-c",
            script,
            "chromium",
            self._program,
            *OPTIONS,
            f"--user-data-dir={profile}",
            "about:blank",
        ]
        environ = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        self._child = subprocess.Popen(  # noqa: S603 - the browser of this machine
            command, env=environ, pass_fds=(for_it, from_it), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self._cleanup.callback(self._end)
        os.close(for_it)
        os.close(from_it)
        target = self._ask("Target.createTarget", {"url": "about:blank"}, whole=True)["targetId"]
        attached = self._ask("Target.attachToTarget", {"targetId": target, "flatten": True}, whole=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._ask(f"{domain}.enable")
        self.resize(*WINDOW)
        return self

    def __exit__(self, *_: object) -> None:
        self._cleanup.close()

    def goto(self, url: str) -> None:
        """Open a page and wait until it is there."""
        answer = self._ask("Page.navigate", {"url": url})
        if "errorText" in answer:
            raise BrowserError(answer["errorText"])
        self.until("document.readyState === 'complete'")

    def evaluate(self, script: str) -> Any:
        """The value of an expression in the page."""
        answer = self._ask("Runtime.evaluate", {"expression": script, "returnByValue": True, "awaitPromise": True})
        if "exceptionDetails" in answer:
            raise BrowserError(json.dumps(answer["exceptionDetails"])[:500])
        return answer["result"].get("value")

    def until(self, script: str, seconds: float = PATIENCE) -> Any:
        """Wait until an expression holds; give its value."""
        deadline = time.monotonic() + seconds
        while True:
            with contextlib.suppress(BrowserError):  # the page is just changing
                if value := self.evaluate(script):
                    return value
            if time.monotonic() > deadline:
                message = f"{script} did not hold within {seconds} s: {self.text[:1500]}"
                raise BrowserError(message)
            time.sleep(0.05)

    @property
    def text(self) -> str:
        """What people read of the page."""
        return str(self.evaluate("document.body.innerText"))

    def sees(self, text: str, seconds: float = PATIENCE) -> None:
        """Wait until the page says so."""
        self.until(f"document.body.innerText.includes({json.dumps(text)})", seconds)

    def click(self, selector: str) -> None:
        """Click with the mouse on what the selector finds first."""
        wanted = json.dumps(selector)
        self.until(f"document.querySelector({wanted}) !== null")
        x, y = self.evaluate(
            f"(() => {{ const e = document.querySelector({wanted}); e.scrollIntoView({{block: 'center'}});"
            " const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self._ask("Input.dispatchMouseEvent", {"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1})

    def follow(self, selector: str) -> None:
        """Click on what leads to another page, and wait until that is there."""
        self.evaluate("window.isOld = true")
        self.click(selector)
        self.until("window.isOld !== true && document.readyState === 'complete'")

    def write(self, selector: str, text: str) -> None:
        """Type into a field in the place of what stands there."""
        self.evaluate(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.focus(); e.select(); }})()"
        )
        self.type(text)

    def type(self, text: str) -> None:
        """Type where the focus is."""
        self._ask("Input.insertText", {"text": text})

    def press(self, key: str) -> None:
        """Press a key."""
        code: dict[str, Any] = {"key": key, "code": key, "windowsVirtualKeyCode": KEYS[key]}
        text = {"Enter": "\r", "/": "/"}.get(key)
        self._ask("Input.dispatchKeyEvent", {"type": "keyDown", **code, **({"text": text} if text else {})})
        self._ask("Input.dispatchKeyEvent", {"type": "keyUp", **code})

    def resize(self, width: int, height: int) -> None:
        """Make the window that large."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._ask("Emulation.setDeviceMetricsOverride", metrics)

    def prefer(self, scheme: str) -> None:
        """Let people prefer light or dark pages."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self._ask("Emulation.setEmulatedMedia", {"features": features})

    def picture(self, file: Path) -> None:
        """Write the whole page to a PNG file."""
        height = min(self.evaluate("document.documentElement.scrollHeight"), 2400)
        width = self.evaluate("window.innerWidth")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        shot = self._ask("Page.captureScreenshot", {"format": "png", "clip": clip, "captureBeyondViewport": True})
        file.write_bytes(base64.b64decode(shot["data"]))

    def _ask(self, method: str, parameters: dict[str, Any] | None = None, *, whole: bool = False) -> Any:
        self._asked += 1
        question: dict[str, Any] = {"id": self._asked, "method": method, "params": parameters or {}}
        if not whole:
            question["sessionId"] = self._session
        os.write(self._out, json.dumps(question).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._asked:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error'].get('message')}")
                return answer["result"]
            self._note(answer)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            if not select.select([self._in], [], [], 2 * PATIENCE)[0]:
                raise BrowserError("The browser does not answer.")
            read = os.read(self._in, 1 << 20)
            if not read:
                raise BrowserError("The browser has ended.")
            self._rest += read
        line, _, self._rest = self._rest.partition(b"\0")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _note(self, told: dict[str, Any]) -> None:
        match told:
            case {"method": "Runtime.exceptionThrown", "params": {"exceptionDetails": details}}:
                self.problems.append(str(details.get("exception", {}).get("description", details["text"])))
            case {
                "method": "Log.entryAdded",
                "params": {"entry": {"level": "error", "source": "security" | "javascript", "text": text}},
            }:
                self.problems.append(text)
            case _:
                pass

    def _end(self) -> None:
        self._child.kill()
        self._child.wait()
        os.close(self._out)
        os.close(self._in)
