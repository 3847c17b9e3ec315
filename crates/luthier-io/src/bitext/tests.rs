use super::*;
use proptest::prelude::*;

const EN_ES: Option<(&str, &str)> = Some(("en", "es"));

fn read(bytes: impl AsRef<[u8]>, languages: Option<(&str, &str)>) -> Result<Bitext> {
    let bytes = std::io::Cursor::new(bytes.as_ref().to_vec());
    Input::new("f", bytes).and_then(|input| parse_bitext(input, languages))
}

fn pairs(bytes: impl AsRef<[u8]>, languages: Option<(&str, &str)>) -> Vec<(String, String)> {
    read(bytes, languages).unwrap().pairs
}

fn message(bytes: impl AsRef<[u8]>, languages: Option<(&str, &str)>) -> String {
    read(bytes, languages).unwrap_err().to_string()
}

fn own(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(s, t)| ((*s).to_owned(), (*t).to_owned())).collect()
}

fn langs(bitext: &Bitext) -> (Option<&str>, Option<&str>) {
    (bitext.source_lang.as_deref(), bitext.target_lang.as_deref())
}

/// A TMX document of these units.
fn tmx(units: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE tmx SYSTEM \"tmx14.dtd\">\n<tmx version=\"1.4\">\n\
         <header srclang=\"en\"/>\n<body>\n{units}\n</body>\n</tmx>\n"
    )
}

/// An XLIFF 1.2 document of these units.
fn xliff1(units: &str) -> String {
    format!(
        "<xliff version=\"1.2\" xmlns=\"urn:oasis:names:tc:xliff:document:1.2\"><file original=\"a\" \
         source-language=\"en-US\" target-language=\"es\" datatype=\"plaintext\"><body>{units}</body></file></xliff>"
    )
}

/// An XLIFF 2.0 document of these units.
fn xliff2(units: &str) -> String {
    format!(
        "<xliff version=\"2.0\" srcLang=\"en\" trgLang=\"es\" xmlns=\"urn:oasis:names:tc:xliff:document:2.0\">\
         <file id=\"f\">{units}</file></xliff>"
    )
}

#[test]
fn text_becomes_one_line() {
    assert_eq!(one_line("\u{1}\n a\u{a0}b \t\r\n\u{2028}c\u{85}\u{0}"), "a\u{a0}b c");
    assert_eq!(one_line(" \n\u{a0}"), "");
}

#[test]
fn languages_match_by_subtags() {
    for (wanted, found, distance) in [
        ("en", "en", Some(0)),
        ("en", "EN-us", Some(1)),
        ("en", "en_GB.UTF-8", Some(3)),
        ("en-US", "en", None),
        ("en", "eng", None),
        ("sr-latin", "sr@latin", Some(0)),
        ("", "en", None),
    ] {
        assert_eq!(language::distance(wanted, found), distance, "{wanted} {found}");
    }
    assert!(language::is_code("pt-BR") && language::is_code("zh_Hant_TW"));
    assert!(!language::is_code("dog") && !language::is_code("en us") && !language::is_code("xx"));
}

#[test]
fn compressed_files_and_utf16_are_read() {
    use std::io::Write;
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gz.write_all("\u{feff}a\tb\n".as_bytes()).unwrap();
    assert_eq!(pairs(gz.finish().unwrap(), None), own(&[("a", "b")]));
    let unicode_text: Vec<u8> = "\u{feff}ñ\té\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(pairs(&unicode_text, None), own(&[("ñ", "é")]));
    let document =
        tmx(r#"<tu><tuv xml:lang="en"><seg>a</seg></tuv><tuv xml:lang="es"><seg>ñ</seg></tuv></tu>"#)
            .replace("UTF-8", "UTF-16");
    let big: Vec<u8> = document.encode_utf16().flat_map(u16::to_be_bytes).collect();
    assert_eq!(pairs(&big, None), own(&[("a", "ñ")]));
    assert_eq!(
        message(&unicode_text[..unicode_text.len() - 1], None),
        "f:1: the text in UTF-16 ends within a character; the file is truncated; copy or create the file again"
    );
    assert_eq!(
        message(b"\xff\xfea\0\n\0\x00\xd8\t\0", None),
        "f:2: 0xd800 is not a character of UTF-16; save the file as UTF-8"
    );
}

#[test]
fn other_formats_are_named() {
    for (bytes, expected) in [
        (&b" \n"[..], "f: is empty, expected a bilingual file (TSV, TMX, XLIFF or PO)"),
        (
            b"<?xml version='1.0'?>\n<TS><context/></TS>",
            "f: is XML with the root element <TS>, expected <tmx> or <xliff>; export it as TMX, XLIFF, PO or TSV",
        ),
        (
            b"<html>",
            "f: is XML with the root element <html>, expected <tmx> or <xliff>; export it as TMX, XLIFF, PO or TSV",
        ),
        (
            b"<?xml version='1.0'?>\n",
            "f: is XML without a root element, expected <tmx> or <xliff>; the file may be truncated: copy or create it again",
        ),
        (
            b"\xde\x12\x04\x95\0\0\0\0",
            "f: is a compiled catalogue of gettext (MO), expected PO; give the PO file, or convert it with msgunfmt",
        ),
        (
            b"ok\tok\nab\xff\tc\n",
            "f:2: byte 3 of the line (0xff) is not UTF-8; convert the file to UTF-8, with iconv for instance",
        ),
        (
            b"<?xml version='1.0' encoding='windows-1252'?><tmx>\xe9",
            "f:1: byte 51 of the line (0xe9) is not UTF-8; the file declares windows-1252: convert it with iconv -f windows-1252 -t UTF-8",
        ),
        (
            "<?xml version='1.0' encoding='latin1'?><tmx>é".as_bytes(),
            "f:1: the file declares the encoding latin1, expected UTF-8; convert it with iconv -f latin1 -t UTF-8, and declare UTF-8",
        ),
        (
            "msgid \"\"\nmsgstr \"Content-Type: text/plain; charset=ISO-8859-1\\n\"\n# é".as_bytes(),
            "f:1: the file declares the encoding ISO-8859-1, expected UTF-8; convert it with msgconv -t UTF-8",
        ),
        (
            b"msgid \"a\"\nmsgstr \"\"\n#~ msgid \"b\"\n",
            "f: has no segment pair (format: PO; skipped: 1 untranslated, 1 obsolete); give a file with finished translations",
        ),
        (
            b"one\ntwo",
            "f:1: found no tab, expected source and target separated by a tab (no other bilingual format was recognised either); give a file in TSV, TMX, XLIFF or PO",
        ),
    ] {
        assert_eq!(message(bytes, EN_ES), expected);
    }
}

#[test]
fn tsv_without_header() {
    let bitext = read("a b\tc\r\n\r\n\tx\n y\u{b}z\tw ", EN_ES).unwrap();
    assert_eq!(bitext.pairs, own(&[("a b", "c"), ("y z", "w")]));
    assert_eq!((bitext.skipped.untranslated, bitext.skipped.total(), langs(&bitext)), (1, 1, (None, None)));
    assert_eq!(bitext.format.to_string(), "TSV");
    // Lines that begin like other formats.
    assert_eq!(pairs("<b>a</b>\t<b>b</b>\n", None), own(&[("<b>a</b>", "<b>b</b>")]));
    assert_eq!(pairs("# 1\tn.º 1\nmsgid\tx\n", None), own(&[("# 1", "n.º 1"), ("msgid", "x")]));
}

#[test]
fn tsv_headers_choose_columns() {
    let text = "es\tid\ten-GB\nhola\t1\thello\n";
    let bitext = read(text, EN_ES).unwrap();
    assert_eq!(
        (bitext.pairs.clone(), langs(&bitext)),
        (own(&[("hello", "hola")]), (Some("en-GB"), Some("es")))
    );
    for (text, wanted, expected) in [
        ("Target\tSource\nb\ta\n", EN_ES, &[("a", "b")][..]),
        ("en\tes\na\tb\n", None, &[("a", "b")]),
        ("es\ten\na\tb\n", EN_ES, &[("b", "a")]),
        ("fil\tast\na\tb\n", Some(("ast", "fil")), &[("b", "a")]),
        // No headers: three letters could be words, and one name is not enough.
        ("dog\tgos\na\tb\n", EN_ES, &[("dog", "gos"), ("a", "b")]),
        ("source\tfuente\n", EN_ES, &[("source", "fuente")]),
        ("no\tno\n", EN_ES, &[("no", "no")]),
        ("en-GB\ten\tes\na\tb\tc\n", EN_ES, &[("b", "c")]),
    ] {
        assert_eq!(pairs(text, wanted), own(expected), "{text}");
    }
    assert_eq!(langs(&read("src\ttgt\na\tb\n", None).unwrap()), (None, None));
    assert_eq!(
        message("fr\tes\na\tb\n", EN_ES),
        "f:1: no column is in en; the header has: fr, es; check the languages; if this line is text, add the header \
         en<TAB>es before it"
    );
    assert_eq!(
        message("fr\tes\tde\na\tb\tc\n", None),
        "f:1: the header has 3 languages: fr, es, de, expected 2; name two with --source-lang and --target-lang"
    );
    assert_eq!(
        message("en\tes\tde\na\tb\n", EN_ES),
        "f:2: found 2 columns, expected 3, as in the header; correct the line"
    );
}

#[test]
fn tsv_quotes_only_if_all_marks_quote() {
    for (text, expected) in [
        ("\"a\nb\"\tc\n\"d \"\"e\"\"\"\t\"\"\nf\tg\n", &[("a b", "c"), ("f", "g")][..]),
        ("\"a\"\t\"b\"", &[("a", "b")]),
        ("\"a\"\t\"b\"\r\n", &[("a", "b")]),
        // Marks that are not closed, not doubled, or within a cell.
        ("\"a\tb\nc\td\n", &[("\"a", "b"), ("c", "d")]),
        ("\"a\" b\tc\n", &[("\"a\" b", "c")]),
        ("\"a\"\tb\nc \"d\"\te\n", &[("\"a\"", "b"), ("c \"d\"", "e")]),
        // Marks of two lines that could enclose the text between them.
        ("\"a\tb\nc\"\td\n", &[("\"a", "b"), ("c\"", "d")]),
        ("a\t\"b\nc\"\td\n", &[("a", "\"b"), ("c\"", "d")]),
        ("a\t\"b\nc\td\"\n", &[("a", "\"b"), ("c", "d\"")]),
    ] {
        assert_eq!(pairs(text, EN_ES), own(expected), "{text}");
    }
    assert_eq!(
        message("a\tb\n\"c\td\ne\tf\tg\n", EN_ES),
        "f:3: found 3 columns, expected 2: source and target separated by a tab; correct the line; quotation marks are \
         read as text, because those of line 2 do not quote a cell"
    );
    assert_eq!(
        message("\"a\n\"\tb\nc\td\te\n", EN_ES),
        "f:1: found no tab, expected source and target separated by a tab (no other bilingual format was recognised \
         either); correct the line; quotation marks are read as text, because those of line 3 do not quote a cell"
    );
    assert_eq!(
        message("a\tb\tc\n", EN_ES),
        "f:1: found 3 columns, expected 2: source and target separated by a tab; remove the other columns, or add a \
         header of language codes such as en<TAB>es"
    );
}

#[test]
fn tmx_languages() {
    let text = tmx("<tu><prop type='x'>p</prop><tuv xml:lang='EN-us'><prop>p</prop><seg>a &lt; b\n  &#233;\
        <![CDATA[ &amp; ]]></seg></tuv><tuv lang='es-MX'><seg>b</seg></tuv><tuv xml:lang='es'><seg>c</seg></tuv></tu>\
        <tu><tuv xml:lang='en'><seg>only</seg></tuv></tu>\
        <tu><tuv xml:lang='en'><seg>x</seg></tuv><tuv xml:lang='es'><seg/></tuv></tu>");
    let bitext = read(&text, EN_ES).unwrap();
    assert_eq!(bitext.pairs, own(&[("a < b é &amp;", "c")]));
    assert_eq!(bitext.skipped, Skipped { untranslated: 1, other_language: 1, ..Skipped::default() });
    assert_eq!(langs(&bitext), (Some("EN-us"), Some("es")));
    assert_eq!(pairs(&text, Some(("es", "en"))), own(&[("c", "a < b é &amp;")]));
    assert_eq!(pairs(&text, None), pairs(&text, EN_ES));
    let reverse =
        tmx("<tu><tuv xml:lang='es'><seg>a</seg></tuv><tuv xml:lang='en-US'><seg>b</seg></tuv></tu>");
    assert_eq!(pairs(reverse, None), own(&[("b", "a")]), "the source is that of the header");
    assert_eq!(
        message(&text, Some(("en", "fr"))),
        "f: no segment is in fr; the file has: EN-us, en, es, es-MX; check the languages"
    );
    assert_eq!(
        message(&text, Some(("de", "fr"))),
        "f: no segment is in de or fr; the file has: EN-us, en, es, es-MX; check the languages"
    );
    assert_eq!(
        message(tmx("<tu><tuv xml:lang='en'/><tuv xml:lang='de'/><tuv xml:lang='fr'/></tu>"), None),
        "f: expected 2 languages, found 3: de, en, fr; name two with --source-lang and --target-lang"
    );
    assert_eq!(message(tmx(""), EN_ES), "f: has no translation unit with text; export it again");
    assert_eq!(
        message(tmx("<tu>\n<tuv><seg>a</seg></tuv></tu>"), EN_ES),
        "f:7: <tuv> has no language; add the attribute xml:lang"
    );
}

#[test]
fn tmx_inline_elements() {
    let unit = |en: &str, es: &str| {
        tmx(&format!(
            "<tu><tuv xml:lang='en'><seg>{en}</seg></tuv><tuv xml:lang='es'><seg>{es}</seg></tuv></tu>"
        ))
    };
    for (en, es, expected) in [
        // `x` connects the languages, also for `ept`, which has only `i`.
        (
            "<bpt i='1' x='7'>&lt;b&gt;<sub>t</sub></bpt>a<ept i='1'>&lt;/b&gt;</ept>",
            "<bpt i='2' x='7'/>b<ept i='2'/>",
            ("<bpt x=\"7\"/>a<ept x=\"7\"/>", "<bpt x=\"7\"/>b<ept x=\"7\"/>"),
        ),
        (
            "<bpt i='1'>{</bpt>a<ept i='1'>}</ept><ph>\n</ph>",
            "<it x='2' pos='begin'>c</it><ut>u</ut>b",
            ("<bpt i=\"1\"/>a<ept i=\"1\"/><ph/>", "<it x=\"2\"/><ut/>b"),
        ),
        (
            "a <hi type='b'>b<!-- no --></hi> <b>c</b>",
            "<hi x='&lt;&quot;&gt;'>d</hi>",
            ("a <hi>b</hi> <b>c</b>", "<hi x=\"&lt;&quot;&gt;\">d</hi>"),
        ),
    ] {
        assert_eq!(pairs(unit(en, es), EN_ES), own(&[expected]));
    }
}

#[test]
fn xliff_1_states_and_alternatives() {
    let unit = |attributes: &str, target: &str| {
        format!("<trans-unit id=\"1\" {attributes}><source>s</source>{target}</trans-unit>")
    };
    let text = xliff1(
        &[
            unit("", "<target state=\"translated\">a</target>"),
            unit("", "<target state=\"new\">s</target>"),
            unit("", "<target state=\"needs-translation\">s</target>"),
            unit("", "<target state=\"needs-review-translation\">s</target>"),
            unit("", "<target/>"),
            unit("", "<alt-trans><source>x</source><target>no</target></alt-trans>"),
            unit("translate=\"no\"", "<target>no</target>"),
            format!(
                "<group translate=\"no\">{}{}</group>",
                unit("", "<target>no</target>"),
                unit("translate=\"yes\"", "<target>b</target>")
            ),
            unit("approved=\"no\"", "<target>c</target><alt-trans><target>no</target></alt-trans>"),
        ]
        .concat(),
    );
    let bitext = read(&text, EN_ES).unwrap();
    assert_eq!(bitext.pairs, own(&[("s", "a"), ("s", "b"), ("s", "c")]));
    assert_eq!(
        bitext.skipped,
        Skipped { untranslated: 4, fuzzy: 1, not_translatable: 2, ..Skipped::default() }
    );
    assert_eq!(bitext.skipped.to_string(), "4 untranslated, 1 fuzzy, 2 not translatable");
    assert_eq!(langs(&bitext), (Some("en-US"), Some("es")));
    let back = read(&text, Some(("es", "en"))).unwrap();
    assert_eq!(
        (back.pairs[0].clone(), langs(&back)),
        (("a".into(), "s".into()), (Some("es"), Some("en-US")))
    );
    assert_eq!(
        message(&text, Some(("en", "fr"))),
        "f: expected segments from en to fr; the file has: en-US to es; check the languages"
    );
    assert_eq!(
        message("<xliff version='3.0'/>", EN_ES),
        "f:1: the version of XLIFF is 3.0, expected 1.x or 2.x; export it as XLIFF 1.2"
    );
}

#[test]
fn xliff_1_segments_and_inline_elements() {
    let unit = |content: &str| xliff1(&format!("<trans-unit id=\"1\">{content}</trans-unit>"));
    for (content, expected) in [
        (
            "<source>A. B. C.</source><seg-source><g id='1'><mrk mtype='seg' mid='0'>A.</mrk> <mrk mtype='seg' \
             mid='1'>B.</mrk></g> <mrk mtype='seg' mid='2'>C.</mrk></seg-source><target><mrk mtype='seg' \
             mid='1'>b.</mrk> <mrk mtype='seg' mid='0'>a.</mrk><mrk mtype='seg' mid='2'/></target>",
            &[("A.", "a."), ("B.", "b.")][..],
        ),
        (
            "<source>A B</source><seg-source><mrk mtype='seg' mid='0'>A</mrk> <mrk mtype='seg' mid='1'>B</mrk>\
             </seg-source><target>a b</target>",
            &[("A B", "a b")],
        ),
        (
            "<source><g id='1' ctype='bold'>A</g> <x id='2'/><ph id='3'>%s</ph></source><target><x id='2'/>\
             <bpt id='4' rid='1'>&lt;b></bpt>a<ept id='5' rid='1'>&lt;/b></ept> <mrk mtype='term' mid='6'>b</mrk>\
             </target>",
            &[(
                "<g id=\"1\">A</g> <x id=\"2\"/><ph id=\"3\"/>",
                "<x id=\"2\"/><bpt id=\"4\"/>a<ept id=\"5\"/> <mrk mid=\"6\">b</mrk>",
            )],
        ),
    ] {
        assert_eq!(pairs(unit(content), EN_ES), own(expected));
    }
    assert_eq!(read(unit("<source>A</source><target> \n</target>"), EN_ES).unwrap_err().line(), None);
}

#[test]
fn xliff_files_in_several_languages() {
    let file = |to: &str, text: &str| {
        format!(
            "<x:file source-language='en' {to}><x:body><x:trans-unit><x:source>a</x:source><x:target>{text}</x:target>\
             <source>foreign to the root's prefix</source></x:trans-unit></x:body></x:file>"
        )
    };
    let (es, fr) = (file("target-language='es'", "b"), file("target-language='fr'", "c"));
    let text =
        format!("<x:xliff xmlns:x='u' version='1.2'>{es}{fr}</x:xliff>").replace("<source>", "<y:source>");
    let text = text.replace("</source>", "</y:source>");
    let bitext = read(&text, EN_ES).unwrap();
    assert_eq!((bitext.pairs, bitext.skipped.other_language), (own(&[("a", "b")]), 1));
    assert_eq!(
        message(&text, None),
        "f: expected 2 languages, found: en to es, en to fr; name two with --source-lang and --target-lang"
    );
    let unknown = format!("<x:xliff xmlns:x='u' version='1.2'>{}</x:xliff>", file("", "b"));
    assert_eq!(pairs(unknown.replace("<source>", "<y:s>").replace("</source>", "</y:s>"), EN_ES).len(), 1);
}

#[test]
fn xliff_2() {
    let text = xliff2(
        "<unit id='1'><mtc:matches xmlns:mtc='m'><mtc:match><source>x</source><target>y</target></mtc:match>\
         </mtc:matches><originalData><data id='d1'>&lt;b&gt;</data></originalData>\
         <segment state='translated'><source>A <pc id='1' dataRefStart='d1'>b</pc> <ph id='2' dataRef='d1'/></source>\
         <target>a <pc id='1'>B</pc><sc id='3'/><ec startRef='3'/></target></segment>\
         <ignorable><source> </source><target>no</target></ignorable>\
         <segment state='initial'><source>c</source><target>c</target></segment>\
         <segment><source>d</source><target>e</target></segment><segment><source>f</source></segment></unit>\
         <unit id='2' translate='no'><segment><source>g</source><target>g</target></segment></unit>",
    );
    let bitext = read(&text, EN_ES).unwrap();
    let first =
        ("A <pc id=\"1\">b</pc> <ph id=\"2\"/>", "a <pc id=\"1\">B</pc><sc id=\"3\"/><ec startRef=\"3\"/>");
    assert_eq!(bitext.pairs, own(&[first, ("d", "e")]));
    assert_eq!(bitext.skipped, Skipped { untranslated: 2, not_translatable: 1, ..Skipped::default() });
    assert_eq!(langs(&bitext), (Some("en"), Some("es")));
}

#[test]
fn malformed_xml_is_reported() {
    let laughs = "<?xml version='1.0'?>\n<!DOCTYPE tmx [\n<!ENTITY lol 'lol'>\n<!ENTITY lol2 '&lol;&lol;&lol;'>\n]>\n\
                  <tmx><body><tu><tuv xml:lang='en'>\n<seg>&lol2;</seg></tuv></tu></body></tmx>";
    for (text, expected) in [
        (
            laughs.to_owned(),
            "f:7: the entity &lol2; is not one of XML's five; write the character itself; entities that a file defines are not expanded",
        ),
        (
            tmx("<tu><tuv xml:lang='&lol;'/></tu>"),
            "f:6: xml:lang of <tuv> has a reference to no character or to an entity that is not one of XML's five; write the character itself",
        ),
        (
            "<tmx>\n<body>\n<tu>\n".to_owned(),
            "f:3: the file ends here, but <tu> of line 3 is not closed; the file may be truncated: copy or create it again",
        ),
        (
            "<tmx>\n<body>\n<tu\n".to_owned(),
            "f:3: the markup `<tu` is not closed; the file may be truncated: copy or create it again",
        ),
        (
            tmx("<tu><tuv xml:lang='en'><seg>a\n&#xD800;"),
            "f:7: &#xD800; is not a character; write the character itself",
        ),
        (
            tmx("<tu><tuv xml:lang='en'><seg>a & b</seg></tuv></tu>"),
            "f:6: found `&` without an entity; write &amp; for the character &",
        ),
        (tmx("<tu>\n</tuv>"), "f:7: found </tuv>, expected </tu>; correct the line"),
        (
            "<tmx></tmx>\n\n<tmx/>".to_owned(),
            "f:3: found data after the end of the XML document; give one document per file",
        ),
        (
            "<tmx></tmx>\n text".to_owned(),
            "f:2: found data after the end of the XML document; give one document per file",
        ),
        (
            "<?xml version='1.0'?>\ntext <tmx/>".to_owned(),
            "f:2: found text before the root element of XML; remove it",
        ),
        (
            "\n\n<?xml version='1.0'?>\n</tmx>".to_owned(),
            "f:4: found </tmx>, which was not opened; correct the line",
        ),
        (xliff1("<trans-unit id=1>"), "f:1: <trans-unit> has malformed attributes"),
    ] {
        let found = message(&text, EN_ES);
        assert!(found.starts_with(expected), "{found}\n{expected}");
        assert!(found == expected || expected.ends_with("attributes"), "{found}\n{expected}");
    }
}

#[test]
fn po_messages() {
    let text = r#"
# Translator's comment
#, fuzzy
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\n"
"Language: es_ES\n"

#: a.c:1
#, c-format
#| msgid "old"
msgctxt "menu"
msgid "a\tb "
  "\"c\"\\"   "\303\251\xC3\xa9\u00e9\?"
msgstr "x\n"
"y\a"
#, no-wrap, fuzzy
msgid "d"
msgstr "e"
msgid "f"
msgstr ""
msgid "one file"
msgid_plural "%d files"
msgstr[0] "un archivo"
msgstr[1] "%d archivos"
msgstr[2] ""
#, fuzzy
#~ msgctxt "k"
#~ msgid "g"
#~ msgstr "\q"
msgid "h"
msgstr "i"
#~| msgid "previous"
#~ msgid "j"
#~ msgid_plural "k"
"#;
    let bitext = read(text, EN_ES).unwrap();
    assert_eq!(
        bitext.pairs,
        own(&[
            ("a b \"c\"\\ééé?", "x y"),
            ("one file", "un archivo"),
            ("%d files", "%d archivos"),
            ("h", "i")
        ])
    );
    assert_eq!(bitext.skipped, Skipped { untranslated: 2, fuzzy: 1, obsolete: 2, ..Skipped::default() });
    assert_eq!((bitext.format, langs(&bitext)), (BitextFormat::Po, (None, Some("es_ES"))));
    let back = read(text, Some(("es", "en"))).unwrap();
    assert_eq!((&back.pairs[3], langs(&back)), (&("i".to_owned(), "h".to_owned()), (Some("es_ES"), None)));
    assert_eq!(
        message(text, Some(("en", "fr"))),
        "f:4: the header declares the language es_ES, expected en to fr; check the languages, or correct the header"
    );
    // Messages are not known to be in French.
    assert_eq!(
        message(text, Some(("es", "fr"))),
        "f:4: the header declares the language es_ES, expected es to fr; check the languages, or correct the header"
    );
    let french = text.replace("Language: es", "X-Source-Language: fr\\nLanguage: es");
    assert_eq!(pairs(french, Some(("es", "fr")))[3], ("i".to_owned(), "h".to_owned()));
}

#[test]
fn po_charsets() {
    let header =
        |charset: &str| format!("msgid \"\"\nmsgstr \"Content-Type: text/plain; charset={charset}\\n\"\n");
    for (charset, id, is_read) in [
        ("utf8", "é", true),
        ("CHARSET", "é", true),
        ("ISO-8859-1", "e", true),
        ("ISO-8859-1", "é", false),
        ("ISO-2022-JP", "e", false),
    ] {
        let text = format!("{}msgid \"{id}\"\nmsgstr \"x\"\n", header(charset));
        assert_eq!(read(text, EN_ES).is_ok(), is_read, "{charset}");
    }
}

#[test]
fn malformed_po_is_reported() {
    for (text, expected) in [
        ("msgid \"a\"\nmsgstr \"b\n", "f:2: a string is not closed; end it with a quotation mark"),
        ("msgid \"a\"\nmsgstr \"b\" c\n", "f:2: found `c`, expected a string in quotes; correct the line"),
        (
            "msgid \"a\"\nmsgstr \"b\\d\"\n",
            "f:2: `\\d` is not an escape of C; write \\\\ for the character \\",
        ),
        (
            "msgid \"a\"\nmsgstr \"b\\777\"\n",
            "f:2: `\\7` is not an escape of C; write \\\\ for the character \\",
        ),
        (
            "msgid \"a\"\nmsgstr \"\\303\"\n",
            "f:1: the message has escapes that are not UTF-8; write the characters themselves",
        ),
        (
            "msgid \"a\"\n\nmsgid \"b\"\n",
            "f:3: a message has two strings of the same kind; add the missing msgstr",
        ),
        ("msgid \"a\"\n", "f:1: a message has no msgstr; add it, or remove the message"),
        ("msgctxt \"a\"\nmsgstr \"b\"\n\n", "f:1: a message has no msgid; add it, or remove the message"),
        (
            "msgid \"a\"\nmsgstr \"b\"\nmsgstr \"c\"\n",
            "f:3: found a second msgstr, expected msgid; remove one of them",
        ),
        (
            "msgid \"a\"\nmsgstr[1] \"b\"\n",
            "f:2: found msgstr[1], expected msgstr[0]; number the plural forms from 0",
        ),
        (
            "msgid \"a\"\nmsgstr[\u{e9}\n",
            "f:2: found msgstr[\u{e9}], expected msgstr[0]; number the plural forms from 0",
        ),
        (
            "msgid \"a\"\nfoo\tbar\n",
            "f:2: found `foo\tbar`, expected msgid, msgstr, a string in quotes or a comment; correct the line; msgfmt -c finds such errors",
        ),
        ("msgid \"a\"\nmsgid\n", "f:2: a message has two strings of the same kind; add the missing msgstr"),
        ("#~ msgid \"a\"\n\"b\"\n", "f:2: found a string, expected a keyword such as msgid before it"),
    ] {
        assert_eq!(message(text, EN_ES), expected);
    }
    assert_eq!(
        pairs("domain \"d\"\n#, fuzzy\nmsgid \"a\"\nmsgstr \"b\"\nmsgid \"c\"\nmsgstr \"d\"", None).len(),
        1
    );
}

#[test]
fn deep_and_long_documents_are_read() {
    let deep = format!("{}a{}", "<g id='1'>".repeat(20000), "</g>".repeat(20000));
    let text = xliff1(&format!("<trans-unit><source>{deep}</source><target>{deep}</target></trans-unit>"));
    assert!(pairs(text, EN_ES)[0].0.starts_with("<g id=\"1\"><g"));
    let nested = xliff1(&format!("{}{}", "<group>".repeat(20000), "</group>".repeat(20000)));
    assert!(read(nested, EN_ES).is_err());
}

/// Pieces that lead far into the parsers, separated by `|`.
const FRAGMENTS: &str = "<tmx>|</tmx>|<tu>|</tu>|<tuv xml:lang='en'>|<tuv lang='es'>|</tuv>|<seg>|</seg>|<seg/>|\
    <xliff version='1.2'>|<xliff version='2.0' srcLang='en' trgLang='es'>|</xliff>|<trans-unit>|</trans-unit>|<source>|\
    </source>|<target state='new'>|<target>|</target>|<segment>|</segment>|<mrk mtype='seg' mid='1'>|</mrk>|<g id='1'>|\
    </g>|<bpt i='1' x='2'>|</bpt>|<x/>|<?xml version='1.0'?>|<!DOCTYPE a [<!ENTITY b 'c'>]>|&b;|&#|&amp;|<![CDATA[|]]>|\
    <!--|-->|\n|\r\n|\t|\"|\"\"|\\|\\x|\\30|\\u12|a|é|\u{2028}| |en|es|source|msgid |msgid_plural |msgstr |msgstr[0] |\
    msgctxt |#~ |#, fuzzy|# |]|[|'|x:|=";

fn fragments() -> impl Strategy<Value = String> {
    let pieces: Vec<&str> = FRAGMENTS.split('|').collect();
    proptest::collection::vec(proptest::sample::select(pieces), 0..40).prop_map(|parts| parts.concat())
}

/// Reads a text in each format, whatever it is, and checks what holds for all pairs.
fn read_as_all(text: &str) -> std::result::Result<(), TestCaseError> {
    for languages in [None, EN_ES, Some(("es", "en"))] {
        for parse in [tsv::parse, tmx::parse, xliff::parse, po::parse] {
            let Ok(parsed) = parse("f", text, languages) else { continue };
            for side in parsed.pairs.iter().flat_map(|(source, target)| [source, target]) {
                prop_assert!(!side.is_empty() && side.trim() == side && !side.contains(char::is_control));
            }
        }
        let _ = read(text, languages);
    }
    Ok(())
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_rejected(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(&bytes, None);
        read_as_all(&String::from_utf8_lossy(&bytes))?;
    }

    #[test]
    fn any_fragments_are_read_or_rejected(text in fragments()) {
        read_as_all(&text)?;
    }

    #[test]
    fn plain_tsv_keeps_its_lines(lines in proptest::collection::vec(("[\"a ]{1,4}", "[\"a ]{1,4}"), 1..5)) {
        let text: String = lines.iter().map(|(s, t)| format!("{s}\t{t}\n")).collect();
        let parsed = tsv::parse("f", &text, None).unwrap();
        prop_assert_eq!(parsed.pairs.len() + parsed.skipped.untranslated, lines.len());
    }

    #[test]
    fn quoted_tsv_is_read_back(rows in proptest::collection::vec(("[\"a\n,]{1,5}b", "[\"c\n,]{1,5}d"), 1..5)) {
        let quote = |cell: &str| format!("\"{}\"", cell.replace('"', "\"\""));
        let text: String = rows.iter().map(|(s, t)| format!("{}\t{}\r\n", quote(s), quote(t))).collect();
        let expected: Vec<_> = rows.iter().map(|(s, t)| (one_line(s), one_line(t))).collect();
        prop_assert_eq!(pairs(&text, None), expected);
    }
}
