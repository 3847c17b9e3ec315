"""Tests HTML reports of `luthier report` in headless Chromium: charts, controls, keyboard shortcuts, themes and layout.

scripts/browser.py PAGE.html [--screenshots DIR]

Uses the DevTools protocol over a pipe, so that only Chromium and Python are needed.
"""

import argparse
import base64
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

LIMIT = 60


class Browser:
    """A headless Chromium process with one page, controlled by the DevTools protocol."""

    def __init__(self):
        program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        if not program:
            raise SystemExit("missing: chromium (Debian package chromium)")
        self.home = tempfile.mkdtemp()
        to_read, self.write_end = os.pipe()
        self.read_end, to_write = os.pipe()

        def pipes():
            # Chromium reads commands from descriptor 3 and writes answers to 4; duplicate first, in case 3 or 4 is in use.
            read, write = os.dup(to_read), os.dup(to_write)
            os.dup2(read, 3)
            os.dup2(write, 4)

        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
             "--no-first-run", f"--user-data-dir={self.home}", "--remote-debugging-pipe", "about:blank"],
            close_fds=False, preexec_fn=pipes, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.buffer, self.number, self.wrong = b"", 0, []
        targets = self.ask("Target.getTargets")["targetInfos"]
        target = next(t["targetId"] for t in targets if t["type"] == "page")
        self.session = None
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Runtime", "Page", "Log"):
            self.ask(f"{domain}.enable")

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.write_end)
        os.close(self.read_end)
        shutil.rmtree(self.home, ignore_errors=True)

    def message(self):
        while b"\0" not in self.buffer:
            part = os.read(self.read_end, 1 << 20)
            if not part:
                raise SystemExit("Chromium exited unexpectedly")
            self.buffer += part
        one, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(one)

    def ask(self, method, **given):
        self.number += 1
        call = {"id": self.number, "method": method, "params": given}
        if getattr(self, "session", None):
            call["sessionId"] = self.session
        os.write(self.write_end, json.dumps(call).encode() + b"\0")
        while True:
            got = self.message()
            if got.get("method") == "Runtime.exceptionThrown":
                self.wrong.append(got["params"]["exceptionDetails"].get("exception", {}).get("description", "exception"))
            elif got.get("method") == "Runtime.consoleAPICalled" and got["params"]["type"] in ("error", "warning"):
                self.wrong.append(str(got["params"]["args"]))
            elif got.get("method") == "Log.entryAdded" and got["params"]["entry"]["level"] in ("error", "warning"):
                self.wrong.append(got["params"]["entry"]["text"])
            if got.get("id") == self.number:
                if "error" in got:
                    raise SystemExit(f"{method}: {got['error']}")
                return got["result"]

    def value(self, expression):
        got = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in got:
            raise SystemExit(f"{expression}: {got['exceptionDetails']}")
        return got["result"].get("value")

    def wait(self, expression):
        until = time.monotonic() + LIMIT
        while not self.value(expression):
            if time.monotonic() > until:
                raise SystemExit(f"not true after {LIMIT} s: {expression}")
            time.sleep(0.05)

    def window(self, width, height=900, dark=False):
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def open(self, page):
        """Opens a file, or the address of a server."""
        self.ask("Page.navigate", url=page if "://" in page else pathlib.Path(page).resolve().as_uri())
        self.wait("document.documentElement?.dataset.ready === 'true'")
        self.settle()

    def settle(self):
        """Waits until pending layout and drawing are complete."""
        self.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => done(true), 60))))")

    def press(self, key):
        text = key if len(key) == 1 else ""
        self.ask("Input.dispatchKeyEvent", type="keyDown", key=key, text=text)
        self.ask("Input.dispatchKeyEvent", type="keyUp", key=key)

    def type(self, text):
        for key in text:
            self.press(key)

    def screenshot(self, path, width):
        height = self.value("document.documentElement.scrollHeight")
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=min(height, 16000), deviceScaleFactor=1, mobile=width < 600)
        self.settle()
        got = self.ask("Page.captureScreenshot", format="png")
        pathlib.Path(path).write_bytes(base64.b64decode(got["data"]))


def check(what, ok, seen=""):
    if not ok:
        raise SystemExit(f"check failed: {what} {seen}")
    print(f"  {what} {seen}".rstrip())


CHARTS = """[...document.querySelectorAll('.chart')].map(c => [
    c.closest('section').id, c.querySelectorAll('svg .mark, svg .curve').length,
    [...c.querySelectorAll('svg path, svg circle, svg line, svg text')].filter(e => /NaN|undefined/.test(e.outerHTML)).length])"""


def use(browser, page):
    """Checks all sections and controls of a report."""
    browser.window(1280)
    browser.open(page)
    sections = browser.value("[...document.querySelectorAll('main section')].map(s => s.id)")
    rich = browser.value("JSON.parse(document.getElementById('data').textContent).evidence.length > 0")
    runs = browser.value("JSON.parse(document.getElementById('data').textContent).runs")
    of_parts = [name for name, key in [("held-out", "heldOut"), ("stability", "stability")] if any(r[key] for r in runs)]
    wanted = ["runs", *of_parts, "learning", "weights"] + (["headroom", "significance", "surfaces", "sentences"] if rich else ["sentences"]) + ["settings"]
    check("sections", sections == wanted, sections)
    charts = browser.value(CHARTS)
    check("every chart has marks", charts and all(n > 0 for _, n, _ in charts), f"({len(charts)} charts, {sum(c[1] for c in charts)} marks)")
    check("no mark has NaN or undefined coordinates", not any(c[2] for c in charts))
    check("no external resources are loaded", browser.value("performance.getEntriesByType('resource').filter(r => !r.name.startsWith('data:')).length") == 0)
    runs = browser.value("document.querySelectorAll('#runs tbody tr').length")
    pressed = browser.value("""(() => { const b = document.querySelector('#learning .legend button'); const n = () => document.querySelectorAll('#learning .chart')[0].querySelectorAll('.curve').length;
        const before = n(); b.click(); const after = n(); b.click(); return [before, after, n()]; })()""")
    check("the legend hides and shows a curve", pressed == [runs, runs - 1, runs] or runs == 1, pressed)
    if rich:
        use_sentences(browser)
    if browser.value("document.querySelector('#groups select')?.options.length ?? 0") > 1:
        first = browser.value("document.querySelector('#headroom .note').textContent")
        browser.value("(() => { const s = document.querySelector('#groups select'); s.selectedIndex = 1; s.dispatchEvent(new Event('change')); return true; })()")
        browser.settle()
        check("another system can be selected", browser.value("document.querySelector('#headroom .note').textContent") != first and all(c[1] and not c[2] for c in browser.value(CHARTS)))
        use_sentences(browser)
    for width in (1280, 400):
        browser.window(width)
        browser.settle()
        wide = browser.value("Math.max(innerWidth, document.documentElement.scrollWidth)")
        check(f"no horizontal overflow at {width} pixels", wide <= width, f"({wide})")
    # Light and dark theme.
    back = "getComputedStyle(document.body).backgroundColor"
    light = browser.value(back)
    browser.press("t")
    dark = browser.value(back)
    browser.press("t")
    check("t switches the theme and back", light != dark and browser.value(back) == light, f"({light}, {dark})")
    browser.window(1280, dark=True)
    browser.value("delete document.documentElement.dataset.theme; true")
    check("the theme follows the system setting", browser.value(back) == dark)
    browser.press("?")
    check("? shows the keyboard shortcuts", browser.value("document.getElementById('keys').open"))
    browser.press("?")
    browser.ask("Emulation.setEmulatedMedia", media="print")
    check("print has a white background", browser.value(back) == "rgb(255, 255, 255)")
    browser.ask("Emulation.setEmulatedMedia", media="")
    browser.settle()
    check("no error or warning on the console", not browser.wrong, browser.wrong or "")


def use_sentences(browser):
    shown = "document.querySelectorAll('#list li').length"
    chosen = "[...document.querySelectorAll('#list li')].findIndex(l => l.getAttribute('aria-selected') === 'true')"
    all_ = browser.value(shown)
    check("sentences are listed", all_ > 0, f"({all_})")
    check("differing words are marked", browser.value("document.querySelectorAll('#detail mark').length") > 0)
    check("feature contributions are shown", browser.value("document.querySelectorAll('#detail .bar').length") > 0)
    browser.press("j")
    check("j selects the next sentence", browser.value(chosen) == 1)
    browser.press("k")
    check("k selects the previous sentence", browser.value(chosen) == 0)
    word = browser.value("document.querySelector('#detail dd').textContent.trim().split(/\\s+/).sort((a, b) => b.length - a.length)[0]")
    browser.press("/")
    check("/ focuses the filter", browser.value("document.activeElement.id") == "filter")
    browser.type(word)
    found = browser.value(shown)
    check("the filter reduces the list", 0 < found <= all_, f"({found} of {all_} with {word!r})")
    browser.press("Escape")
    check("Esc leaves the filter", browser.value("document.activeElement.id") != "filter")
    browser.value("(() => { const f = document.getElementById('filter'); f.value = 'no sentence has this'; f.dispatchEvent(new Event('input')); return true; })()")
    check("an empty result is reported", browser.value(shown) == 0 and "No sentence" in browser.value("document.getElementById('detail').textContent"))
    browser.value("(() => { const f = document.getElementById('filter'); f.value = ''; f.dispatchEvent(new Event('input')); return true; })()")
    first = browser.value("document.querySelectorAll('#sentences select')[0].value")
    browser.press("x")
    check("x swaps the systems", browser.value("document.querySelectorAll('#sentences select')[1].value") == first)
    browser.press("x")
    browser.press("d")
    check("d shows all sentences", browser.value(shown) >= all_ and not browser.value("document.getElementById('only').checked"))
    browser.press("d")
    surface = "document.querySelectorAll('#surfaces .chart').length"
    before = browser.value(surface)
    browser.value("(() => { const s = document.querySelector('#surfaces select'); s.selectedIndex = 0; s.dispatchEvent(new Event('change')); return true; })()")
    browser.settle()
    check("error surfaces at other weights", browser.value(surface) == before and all(c[1] for c in browser.value(CHARTS)))


def main():
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("page", nargs="+")
    given.add_argument("--screenshots", metavar="DIR", help="write screenshots at 1280 and 400 pixels, light and dark")
    given = given.parse_args()
    browser = Browser()
    try:
        for page in given.page:
            print(f"{page}:")
            use(browser, page)
            if given.screenshots:
                os.makedirs(given.screenshots, exist_ok=True)
                for width in (1280, 400):
                    for dark in (False, True):
                        browser.window(width, dark=dark)
                        browser.open(page)
                        name = f"{pathlib.Path(page).stem}-{width}-{'dark' if dark else 'light'}.png"
                        browser.screenshot(f"{given.screenshots}/{name}", width)
    finally:
        browser.close()


if __name__ == "__main__":
    sys.exit(main())
