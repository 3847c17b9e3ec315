"""Tests the page of `luthier serve` in headless Chromium: typing, phrases, alternatives, features, themes and layout.

scripts/browser_serve.py ADDRESS TEXT [--screenshots DIR]

ADDRESS is that of a running server, TEXT a sentence with several known words and at its end an unknown one.
"""

import argparse
import os
import sys

from browser import Browser, check

PHRASES = "[...document.querySelectorAll('{} .phrase')].map(b => b.dataset.phrase)"
STATUS = "document.getElementById('status').textContent"


def entered(browser, text):
    """Replaces the text and waits for its translation."""
    browser.value("(() => { const t = document.getElementById('text'); t.value = ''; t.dispatchEvent(new Event('input')); t.focus(); return true; })()")
    browser.wait("document.querySelectorAll('.sentence').length === 0")
    browser.ask("Input.insertText", text=text)
    browser.wait(f"document.querySelectorAll('.sentence').length > 0 && {STATUS}.includes(' s')")


def use(browser, address, text):
    browser.window(1280)
    browser.open(address)
    check("the model is described", "model" in browser.value("document.getElementById('model').textContent"))
    browser.value("document.getElementById('text').focus()")
    browser.type(text)
    browser.wait(f"[...document.querySelectorAll('.source')].some(s => s.textContent === {text!r})")
    source, target = (browser.value(PHRASES.format(side)) for side in (".source", ".target"))
    check("typed text is translated", target, browser.value("document.querySelector('.target').textContent"))
    check("phrases are on both sides", len(source) > 2 and set(target) <= set(source), f"({len(set(source))} phrases)")
    colours = browser.value("[...new Set([...document.querySelectorAll('.phrase')].map(b => getComputedStyle(b).backgroundColor))]")
    check("phrases have different colours", len(colours) > 2, colours)
    check("the unknown word is marked", browser.value("[...document.querySelectorAll('.target .phrase.unknown')].map(b => b.textContent)").count(text.split()[-1]) == 1)
    browser.value("document.querySelector('.target .phrase').focus()")
    check("focus marks the phrase on both sides", len(browser.value(
        "[...new Set([...document.querySelectorAll('.phrase.on')].map(b => b.closest('.side').className))]")) == 2)
    browser.value("document.querySelector('.target .phrase').click()")
    check("a click shows alternatives", browser.value("!document.getElementById('phrase').hidden && document.querySelectorAll('#phrase tbody tr').length") > 0)
    check("the chosen one is marked", browser.value("document.querySelectorAll('#phrase tr.chosen').length") == 1)
    browser.value("document.querySelector('.tools button').click()")
    rows = browser.value("[...document.querySelectorAll('#choice tbody tr')].map(r => [...r.cells].map(c => c.textContent.replace('\\u2212', '-')))")
    total = sum(float(r[3]) for r in rows[:-1])
    check("features add up to the score", abs(total - float(rows[-1][3])) < 0.1, f"({total:.2f})")
    check("another translation can be selected", browser.value("""(() => { const s = document.querySelector('#other'); const before = document.querySelector('#choice table').textContent;
        s.selectedIndex = s.options.length - 1; s.dispatchEvent(new Event('change')); return s.options.length === 1 || document.querySelector('#choice table').textContent !== before; })()"""))
    for width in (1280, 375):
        browser.window(width)
        browser.settle()
        wide = browser.value("Math.max(innerWidth, document.documentElement.scrollWidth)")
        check(f"no horizontal overflow at {width} pixels", wide <= width, f"({wide})")
    back = "getComputedStyle(document.body).backgroundColor"
    light = browser.value(back)
    browser.window(375, dark=True)
    check("the theme follows the system setting", browser.value(back) != light)
    entered(browser, "<b>&amp;</b> <script>document.title = 'run'</script>\nzwei")
    check("markup in the text is shown as text", browser.value("document.querySelector('.source').textContent").startswith("<b>") and browser.value("document.title") != "run")
    check("lines are sentences", browser.value("document.querySelectorAll('.sentence').length") == 2)
    hosts = browser.value("[...new Set(performance.getEntriesByType('resource').map(r => new URL(r.name).origin))]")
    check("no other host is asked", hosts == [address], hosts)
    check("no error or warning on the console", not browser.wrong, browser.wrong or "")


def main():
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("address")
    given.add_argument("text")
    given.add_argument("--screenshots", metavar="DIR", help="write screenshots at 1280 and 375 pixels, light and dark")
    given = given.parse_args()
    browser = Browser()
    try:
        use(browser, given.address, given.text)
        if given.screenshots:
            os.makedirs(given.screenshots, exist_ok=True)
            for width in (1280, 375):
                for dark in (False, True):
                    browser.window(width, dark=dark)
                    browser.open(given.address)
                    entered(browser, given.text)
                    browser.value("document.querySelector('.target .phrase:nth-of-type(2)').click()")
                    browser.value("document.querySelector('.tools button').click()")
                    browser.screenshot(f"{given.screenshots}/serve-{width}-{'dark' if dark else 'light'}.png", width)
    finally:
        browser.close()


if __name__ == "__main__":
    sys.exit(main())
