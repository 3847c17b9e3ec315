"""Writes random bilingual files with polib and translate-toolkit, and what the two libraries read from them.

usage: write_bitext.py DIRECTORY SEED

Next to each FILE there is FILE.expected: the first line has the numbers of untranslated, fuzzy and obsolete entries, each
other line a pair: source, tab, target. Text is normalised as in `bitext.rs`; inline elements are rendered here from the tree
that lxml parses.
"""

import pathlib
import random
import re
import sys

import polib
from lxml import etree
from translate.storage import pypo, tmx, xliff, xliff2

out, rng = pathlib.Path(sys.argv[1]), random.Random(int(sys.argv[2]))

WORDS = ["Save", "file", "señor", "日本語", "naïve", "😀", "%s", "%(n)d", "{0}", "&Open", "_Open", "<b>", "</b>", "&amp;", "it's", "a b"]
MARKS = ['"', "\\", "\\n", "\\\\", "'", "\n", "\t", "  ", "\u00a0", " #, fuzzy", "msgid", '""', "\n\n", "\u2028", "]]>", "-->"]
# Control characters, which XML cannot have, and whose escapes translate-toolkit does not know.
CONTROLS = ["\r", "\v", "\b", "\f"]


def text(marks):
    parts = [rng.choice(WORDS if rng.random() < 0.7 else marks) for _ in range(rng.choice([0, 1, 2, 3, 5, 8, 40]))]
    return rng.choice(["", " "]).join(parts)


def one_line(string):
    """Runs of blanks, controls and line separators become one blank."""
    return re.sub("[ \x00-\x1f\x7f-\x9f\u2028\u2029]+", " ", string).strip()


def write_expected(path, pairs, skipped):
    pairs = [(one_line(source), one_line(target)) for source, target in pairs]
    lines = [" ".join(map(str, skipped))] + [f"{s}\t{t}" for s, t in pairs if s and t]
    path.with_name(path.name + ".expected").write_text("".join(line + "\n" for line in lines), encoding="utf-8", newline="")


def is_pair(source, target):
    return bool(one_line(source) and one_line(target))


def of_messages(messages):
    """Pairs and counts of (obsolete, fuzzy, sources, targets)."""
    pairs, untranslated, fuzzy, obsolete = [], 0, 0, 0
    for is_obsolete, is_fuzzy, sources, targets in messages:
        if is_obsolete:
            obsolete += 1
        elif is_fuzzy:
            fuzzy += 1
        else:
            both = [(sources[min(n, len(sources) - 1)], target) for n, target in enumerate(targets)]
            pairs += both
            untranslated += not all(is_pair(*pair) for pair in both)
    return pairs, (untranslated, fuzzy, obsolete)


def read_polib(path):
    messages = []
    for entry in polib.pofile(str(path)):
        if entry.msgid_plural:
            sources, targets = [entry.msgid, entry.msgid_plural], [entry.msgstr_plural[n] for n in sorted(entry.msgstr_plural)]
        else:
            sources, targets = [entry.msgid], [entry.msgstr]
        messages.append((entry.obsolete, "fuzzy" in entry.flags, sources, targets))
    return of_messages(messages)


def read_toolkit(path):
    messages = []
    for unit in pypo.pofile.parsefile(str(path)).units:
        if unit.isheader():
            continue
        sources = getattr(unit.source, "strings", [unit.source])
        targets = getattr(unit.target, "strings", [unit.target])
        messages.append((unit.isobsolete(), unit.hastypecomment("fuzzy"), sources, targets))
    return of_messages(messages)


def expect_po(path, has_controls=False):
    pairs, skipped = read_polib(path)
    if not has_controls:
        assert read_toolkit(path) == (pairs, skipped), f"{path}: polib and translate-toolkit disagree"
    write_expected(path, pairs, skipped)


def write_polib(path, has_controls):
    po = polib.POFile(wrapwidth=rng.choice([0, 20, 78]), check_for_duplicates=False)
    po.metadata = {"Content-Type": "text/plain; charset=UTF-8", "Language": "es"}
    marks = MARKS + CONTROLS * has_controls
    for n in range(60):
        # An empty msgid would be a header.
        entry = polib.POEntry(msgid=f"{n} " + text(marks), msgstr=text(marks))
        if rng.random() < 0.2:
            entry.msgid_plural = text(marks) + "s"
            entry.msgstr, entry.msgstr_plural = "", {n: text(marks) for n in range(rng.choice([1, 2, 3]))}
        if rng.random() < 0.2:
            entry.msgctxt = text(MARKS) or None
        if rng.random() < 0.2:
            entry.flags = rng.choice([["fuzzy"], ["c-format"], ["c-format", "fuzzy"], ["fuzzy", "no-wrap"]])
        if rng.random() < 0.2:
            entry.previous_msgid, entry.comment, entry.tcomment = "old\nid", "developer's", "translator's"
        entry.obsolete = rng.random() < 0.1
        entry.occurrences = [("a b.c", str(n))] if rng.random() < 0.5 else []
        po.append(entry)
    po.save(str(path), newline=rng.choice(["\n", "\r\n"]))
    expect_po(path, has_controls)


def write_toolkit_po(path):
    store = pypo.pofile()
    store.init_headers(charset="UTF-8", encoding="8bit", language="es")
    for n in range(60):
        source = f"{n} " + text(MARKS)
        is_plural = rng.random() < 0.2
        unit = store.addsourceunit([source, text(MARKS) + "s"] if is_plural else source)
        unit.target = [text(MARKS) for _ in range(2)] if is_plural else text(MARKS)
        if rng.random() < 0.2:
            unit.markfuzzy()
        if rng.random() < 0.2:
            unit.addnote("note")
        if rng.random() < 0.1 and unit.target:
            unit.makeobsolete()
    store.savefile(str(path))
    expect_po(path)


# Inline elements: name, attributes, content: native code, text or nothing.
TMX_INLINE = [
    ("ph", {"x": "1", "type": "br"}, "code"),
    ("hi", {"x": "2"}, "text"),
    ("it", {"pos": "begin"}, "code"),
    ("ut", {}, "code"),
]
XLIFF_INLINE = [
    ("g", {"id": "1", "ctype": "bold"}, "text"),
    ("x", {"id": "2"}, ""),
    ("ph", {"id": "3"}, "code"),
    ("mrk", {"mtype": "term", "mid": "4"}, "text"),
    ("bpt", {"id": "5", "rid": "1"}, "code"),
    ("ept", {"id": "6", "rid": "1"}, "code"),
]
XLIFF2_INLINE = [
    ("pc", {"id": "1", "dataRefStart": "d"}, "text"),
    ("ph", {"id": "2"}, ""),
    ("sc", {"id": "3"}, ""),
    ("ec", {"startRef": "3"}, ""),
]
ID = {"x", "i", "id", "mid", "startRef"}


def add_inline(node, kinds):
    """Appends inline elements, nested at random, to an element."""
    for name, attributes, content in rng.sample(kinds, rng.choice([0, 0, 1, 3])):
        child = etree.SubElement(node, node.tag.replace(etree.QName(node).localname, name), attributes)
        child.text = text(["<", "\n"]) if content else None
        child.tail = text(["&", "\t"])
        if content == "text" and rng.random() < 0.5:
            node = child


def flat(node, kinds):
    """The text of an element, with inline elements as tags."""
    codes = {name for name, _, content in kinds if content != "text"}
    parts = [node.text or ""]
    for child in node:
        name = etree.QName(child).localname
        ids = "".join(f' {key}="{value}"' for key, value in child.attrib.items() if key in ID)
        parts.append(f"<{name}{ids}/>" if name in codes else f"<{name}{ids}>{flat(child, kinds)}</{name}>")
        parts.append(child.tail or "")
    return "".join(parts)


def write_tmx(path):
    store = tmx.tmxfile(sourcelanguage="en", targetlanguage="es")
    for n in range(60):
        store.addtranslation(f"{n} " + text(MARKS), "en", text(MARKS), rng.choice(["es", "es-MX"]), comment=text(MARKS))
        unit = store.units[-1]
        if rng.random() < 0.2:
            unit.settarget(text(MARKS), "fr", append=True)
        for node in unit.xmlelement.iter(unit.namespaced("seg")):
            add_inline(node, TMX_INLINE)
    store.savefile(str(path))
    pairs, untranslated = [], 0
    for unit in tmx.tmxfile.parsefile(str(path)).units:
        nodes = unit.getlanguageNodes()
        segments = [flat(node.find("seg"), TMX_INLINE) for node in nodes]
        if not any(len(node.find("seg")) for node in nodes[:2]):
            assert segments[:2] == [unit.source, nodes[1].find("seg").text or ""], (segments, unit.source)
        pairs.append(segments[:2])
        untranslated += not is_pair(*segments[:2])
    write_expected(path, pairs, (untranslated, 0, 0))


def write_xliff(path, module, kinds):
    store = module(sourcelanguage="en", targetlanguage="es")
    version = 1 if module is xliff.xlifffile else 2
    pairs, untranslated, fuzzy = [], 0, 0
    for n in range(60):
        unit = store.addsourceunit(f"{n} " + text(MARKS))
        unit.setid(str(n))
        target = text(MARKS)
        if rng.random() < 0.8:
            unit.target = target
        for name in ("source", "target"):
            for node in unit.xmlelement.iter(unit.namespaced(name)):
                add_inline(node, kinds)
    for node in store.document.getroot().iter(unit.namespaced("segment" if version == 2 else "target")):
        state = rng.choice([None] * 4 + (["initial", "translated", "final"] if version == 2 else ["new", "needs-translation", "needs-review-translation", "translated", "final"]))
        if state:
            node.set("state", state)
    store.savefile(str(path))
    for unit in module.parsefile(str(path)).units:
        source = next(unit.xmlelement.iter(unit.namespaced("source")))
        target = next(unit.xmlelement.iter(unit.namespaced("target")), None)
        if not len(source) and (target is None or not len(target)):
            assert (source.text or "", target is not None and target.text or "") == (unit.source, unit.target or ""), unit.source
        holder = target if version == 1 else next(unit.xmlelement.iter(unit.namespaced("segment")))
        state = holder.get("state", "") if holder is not None else ""
        if state.startswith("needs-review"):
            fuzzy += 1
        elif target is None or state in ("new", "needs-translation", "initial") or not is_pair(flat(source, kinds), flat(target, kinds)):
            untranslated += 1
        else:
            pairs.append((flat(source, kinds), flat(target, kinds)))
    write_expected(path, pairs, (untranslated, fuzzy, 0))


for n in range(8):
    write_polib(out / f"polib{n}.po", n % 2)
    write_toolkit_po(out / f"toolkit{n}.po")
    write_tmx(out / f"{n}.tmx")
    write_xliff(out / f"1_{n}.xliff", xliff.xlifffile, XLIFF_INLINE)
    write_xliff(out / f"2_{n}.xliff", xliff2.Xliff2File, XLIFF2_INLINE)
