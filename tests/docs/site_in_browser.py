"""Check a built site: `python tests/docs/site_in_browser.py SITE`.

Links inside it have to lead somewhere, and nothing may be loaded from the net. Where Chromium is
installed each page is opened in it too, wide and narrow, light and dark: no script may fail, no
file be missing, and no page be wider than its window. `--pictures FOLDER` keeps what it looks like,
`--only WORD` opens the pages whose path has that word.
"""

from __future__ import annotations

import argparse
import base64
import fcntl
import json
import os
import re
import select
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
LOADED = {"script": "src", "img": "src", "source": "src", "iframe": "src", "object": "data"}
WINDOWS = {"wide": 1400, "narrow": 390}
# The widest element that the window does not hold, unless an element around it scrolls.
OVERFLOW = """
(() => {
  const room = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= room) return "";
  const wide = [...document.body.querySelectorAll("*")].filter(
    element => element.getBoundingClientRect().right > room + 1);
  const found = wide.pop() || document.body;
  return document.documentElement.scrollWidth + " of " + room + ": " +
    found.tagName + "." + found.className + " " + found.textContent.trim().slice(0, 60);
})()
"""


class Page(HTMLParser):
    """The anchors, links and loaded files of a page."""

    def __init__(self, text: str):
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        elif tag == "link" and "canonical" not in found.get("rel", ""):
            self.loaded.append(found.get("href", ""))
        elif found.get(LOADED.get(tag, ""), ""):
            self.loaded.append(found[LOADED[tag]])


def pages_of(site: Path) -> list[Path]:
    """List a site's pages; what lies in `_static` are templates and the like."""
    return [path for path in sorted(site.rglob("*.html")) if "_static" not in path.parts]


def faults_of_links(site: Path) -> Iterator[str]:
    """Yield links that lead nowhere, and what is loaded from the net."""
    files = {path.resolve(): Page(path.read_text("utf-8")) for path in pages_of(site)}
    for path, page in files.items():
        name = path.relative_to(site.resolve())
        for link in (*page.links, *page.loaded):
            parts = urlsplit(link)
            if parts.scheme in ("http", "https") or parts.netloc:
                if link in page.loaded:
                    yield f"{name}: loads {link} from the net"
                continue
            if parts.scheme:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                yield f"{name}: {link} leads nowhere"
            elif parts.fragment and target in files and link not in page.loaded:
                anchors = files[target].anchors
                yield from [] if unquote(parts.fragment) in anchors else [f"{name}: no {link}"]
    for path in site.rglob("*.css"):
        for found in re.findall(
            r"(?:url\(|@import)\s*['\"]?(https?:[^)'\" ]+)", path.read_text("utf-8")
        ):
            yield f"{path.relative_to(site)}: loads {found} from the net"


# Seconds that Chromium may be silent while something is waited for.
PATIENCE = 60


class Browser:
    """Chromium without a window, spoken to through a pair of pipes."""

    def __init__(self, program: str, profile: str):
        to_browser, self._send = os.pipe()
        self._receive, from_browser = os.pipe()

        def take_pipes() -> None:
            """Put the pipes where Chromium looks for them, neither on the other's place."""
            ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (to_browser, from_browser)]
            os.dup2(ends[0], 3)
            os.dup2(ends[1], 4)

        self._process = subprocess.Popen(
            [
                *(program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
                *("--disable-background-networking", "--disable-component-update"),
                *("--disable-sync", "--no-first-run", "--allow-file-access-from-files"),
                *(f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank"),
            ],
            preexec_fn=take_pipes,
            close_fds=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._rest = b""
        self._number = 0
        self.events: list[dict] = []
        self._session: str | None = None
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(target["targetId"] for target in targets if target["type"] == "page")
        self._session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for room in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{room}.enable")

    def _message(self) -> dict:
        while b"\0" not in self._rest:
            if not select.select([self._receive], [], [], PATIENCE)[0]:
                raise RuntimeError(f"Chromium says nothing for {PATIENCE} s")
            piece = os.read(self._receive, 1 << 20)
            if not piece:
                raise RuntimeError("Chromium has ended")
            self._rest += piece
        text, _, self._rest = self._rest.partition(b"\0")
        return json.loads(text)

    def call(self, method: str, **params: object) -> dict:
        """Call a method of the DevTools protocol; keep the events that come meanwhile."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._send, json.dumps(message).encode() + b"\0")
        while (answer := self._message()).get("id") != self._number:
            self.events.append(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def open(self, address: str) -> None:
        """Open a page and wait until it is loaded."""
        self.events.clear()
        self.call("Page.navigate", url=address)
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self.events.append(self._message())

    def value(self, expression: str) -> object:
        return self.call("Runtime.evaluate", expression=expression)["result"].get("value")

    def close(self) -> None:
        os.close(self._send)
        self._process.terminate()
        self._process.wait(timeout=20)
        os.close(self._receive)

    def complaints(self) -> Iterator[str]:
        """Yield what failed since the page was opened."""
        for event in self.events:
            params = event.get("params", {})
            match event["method"]:
                case "Runtime.exceptionThrown":
                    details = params["exceptionDetails"]
                    yield details.get("exception", {}).get("description", details["text"])
                case "Log.entryAdded" if params["entry"]["level"] == "error":
                    yield f"{params['entry']['text']} {params['entry'].get('url', '')}"
                case "Runtime.consoleAPICalled" if params["type"] == "error":
                    yield " ".join(str(word.get("value")) for word in params["args"])


def started(program: str, profile: str) -> Browser | None:
    """Start a browser; where it cannot, as a stub of another package's, say so."""
    try:
        return Browser(program, profile)
    except (OSError, RuntimeError, StopIteration) as error:
        print(f"{program} does not start ({error}): no page was opened in a browser")
        return None


def faults_in_browser(program: str, site: Path, only: str, pictures: Path | None) -> Iterator[str]:
    """Yield what is wrong with each page in each window and colour."""
    pages = [page for page in pages_of(site) if only in str(page.relative_to(site))]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = started(program, profile)
        if browser is None:
            return
        for window, width in WINDOWS.items():
            for colour in ("light", "dark"):
                browser.call(
                    "Emulation.setDeviceMetricsOverride",
                    **{"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False},
                )
                scheme = {"name": "prefers-color-scheme", "value": colour}
                browser.call("Emulation.setEmulatedMedia", features=[scheme])
                for page in pages:
                    name = page.relative_to(site)
                    browser.open(page.resolve().as_uri())
                    where = f"{name} ({window}, {colour})"
                    if overflow := browser.value(OVERFLOW):
                        yield f"{where}: wider than its window: {overflow}"
                    yield from (f"{where}: {complaint}" for complaint in browser.complaints())
                    if pictures:
                        shot = browser.call("Page.captureScreenshot", format="png")["data"]
                        file = f"{'-'.join(name.with_suffix('').parts)}-{window}-{colour}.png"
                        (pictures / file).write_bytes(base64.b64decode(shot))
        browser.close()
    print(f"{len(pages)} pages opened in Chromium, wide and narrow, light and dark")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("site", type=Path)
    parser.add_argument("--pictures", type=Path, metavar="FOLDER")
    parser.add_argument("--only", default="", metavar="WORD")
    asked = parser.parse_args()
    faults = list(faults_of_links(asked.site))
    print(f"links of {len(pages_of(asked.site))} pages followed")
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        print("Chromium is not here: no page was opened in a browser")
    else:
        if asked.pictures:
            asked.pictures.mkdir(parents=True, exist_ok=True)
        faults += faults_in_browser(program, asked.site, asked.only, asked.pictures)
    for fault in faults:
        print(fault)
    print(f"{len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
