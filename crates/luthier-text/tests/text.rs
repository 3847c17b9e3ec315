//! Round trips of raw text, and tokens of each language.
#![allow(clippy::unwrap_used)]

use luthier_text::{
    JOINER, Language, Side, TextModel, Tokeniser, clean, detokenise, is_placeholder, normalise,
    protected_spans,
};
use proptest::prelude::*;

fn tokeniser(language: &str) -> Tokeniser {
    Tokeniser::new(&Language::new(language).unwrap())
}

/// Expected tokens were written by hand.
#[test]
fn tokens_of_each_language() {
    for (language, line, tokens) in [
        ("en", "It's John's, isn't it?", "It ￭'s John ￭'s ￭, isn ￭'t it ￭?"),
        (
            "en",
            "See Sec. 3.1, i.e. the U.S. case (etc.).",
            "See Sec. 3.1 ￭, i.e. the U.S. case (￭ etc ￭. ￭) ￭.",
        ),
        ("en", "x->y, a/b, a == b; f(x)[0]", "x ￭->￭ y ￭, a ￭/￭ b ￭, a == b ￭; f ￭(￭ x ￭) ￭[￭ 0 ￭]"),
        ("en", "Wait... \"what?!\" – 50% of C++", "Wait ￭... \"￭ what ￭? ￭! ￭\" – 50 ￭% of C++"),
        ("en", "use -v, --all and .gitignore in os.path", "use -v ￭, --all and .gitignore in os.path"),
        ("fr", "L'eau, c'est « bon » : aujourd'hui !", "L'￭ eau ￭, c'￭ est « bon » : aujourd'￭ hui !"),
        ("it", "Dell'acqua, un po' d'olio.", "Dell'￭ acqua ￭, un po ￭' d'￭ olio ￭."),
        ("de", "Das ist z. B. Hr. Meier, „gut“.", "Das ist z. B. Hr. Meier ￭, „￭ gut ￭“ ￭."),
        ("es", "¿Qué? ¡Sí! El Sr. Pérez, EE.UU.", "¿￭ Qué ￭? ¡￭ Sí ￭! El Sr. Pérez ￭, EE.UU."),
        ("pt", "O Sr. Silva disse-lhe: \"olá\".", "O Sr. Silva disse-lhe ￭: \"￭ olá ￭\" ￭."),
        ("cs", "Např. tzv. „dům“ má 2,5 m.", "Např. tzv. „￭ dům ￭“ má 2,5 m ￭."),
        ("nl", "Bijv. 's avonds, d.w.z. laat.", "Bijv. '￭ s avonds ￭, d.w.z. laat ￭."),
        ("zh", "我用Python 3，好吗？", "我 用 Python 3 ， 好 吗 ？"),
        ("ja", "東京 (Tokyo) です。", "東 京 ▁ (￭ Tokyo ￭) ▁ で す 。"),
    ] {
        let made = tokeniser(language).tokenise(line);
        assert_eq!(detokenise(&made), line, "{language}");
        assert_eq!(made, tokens, "{language}");
    }
}

#[test]
fn languages_and_their_files() {
    for (path, code) in [
        ("train.es", Some("es")),
        ("a/b.train.pt-BR.gz", Some("pt-BR")),
        ("train.txt", None),
        ("train", None),
        (".es", None),
        ("x.tok", None),
    ] {
        let found = Language::of_file(path.as_ref());
        assert_eq!(found.as_ref().map(Language::code), code, "{path}");
    }
    let message = Language::new("english").unwrap_err().to_string();
    assert_eq!(
        message,
        "`english` is not a language code; expected two or three letters of ISO 639, such as en, or with a region, such as pt-BR"
    );
}

fn model() -> TextModel {
    let pairs = [
        (
            "The file is big. It is new. A list of files",
            "El archivo es grande. Es nuevo. Una lista de archivos",
        ),
        ("We like the Python list and the file.", "Nos gusta la lista de Python y el archivo."),
        ("Introduction to the Python Language", "Introducción al lenguaje Python"),
        ("General Questions about the Language", "Preguntas generales sobre el lenguaje"),
        ("the language and general questions", "el lenguaje y preguntas generales"),
    ];
    TextModel::train(&pairs, &Language::new("en").unwrap(), &Language::new("es").unwrap())
}

/// Casing that is removed from a line is given to its translation.
#[test]
fn casing_of_translations() {
    let model = model();
    for (line, tokens, translation, restored) in [
        (
            "The file. It is new.",
            "the file ￭. It is new ￭.",
            "el archivo ￭. es nuevo ￭.",
            "El archivo. Es nuevo.",
        ),
        ("The file. We like", "the file ￭. We like", "archivo ￭. nos gusta", "Archivo. Nos gusta"),
        ("file: The list", "file ￭: The list", "archivo ￭: la lista", "archivo: la lista"),
        ("THE FILE IS NEW", "the file is new", "el archivo es nuevo", "EL ARCHIVO ES NUEVO"),
        ("Python is new.", "Python is new ￭.", "es nuevo ￭.", "Es nuevo."),
        ("3D file", "3D file", "archivo 3D", "Archivo 3D"),
        ("(The file)", "(￭ the file ￭)", "(￭ el archivo ￭)", "(El archivo)"),
    ] {
        let prepared = model.prepare(Side::Source, line);
        assert_eq!(prepared.tokens, tokens);
        assert_eq!(model.restore(Side::Target, translation, &prepared), restored, "{line}");
        assert_eq!(model.restore(Side::Source, &prepared.tokens, &prepared), line);
    }
}

/// Only spans of both sides become placeholders in training, so that no phrase pair loses or adds one.
#[test]
fn placeholders_of_pairs() {
    let (source, target) =
        model().prepare_pair("open %s of <b>3 12</b> at 10:30", "abra <b>12 %s</b> %d a las 10:30");
    assert_eq!(source.tokens, "open ⟦fmt1⟧ of ⟦tag1⟧ 3 ⟦num1⟧ ⟦tag2⟧ at ⟦num2⟧");
    assert_eq!(target.tokens, "abra ⟦tag1⟧ ⟦num1⟧ ⟦fmt1⟧ ⟦tag2⟧ %d a las ⟦num2⟧");
    assert!(source.tokens.split(' ').filter(|t| is_placeholder(t)).count() == 5);
    let prepared = model().prepare(Side::Source, "open %s of <b>x</b>");
    let reference = model().prepare_reference(&prepared, "abra <b>x</b> de %s y %d");
    assert_eq!(reference.tokens, "abra ⟦tag1⟧ x ⟦tag2⟧ de ⟦fmt1⟧ y %d");
    // A span that the decoder has lost is not lost to the reader.
    assert_eq!(model().restore(Side::Target, "abra", &prepared), "Abra %s <b></b>".replace("Abra", "abra"));
}

#[test]
fn numbers_are_converted_if_the_corpus_does_so() {
    let (en, de) = (Language::new("en").unwrap(), Language::new("de").unwrap());
    let pairs =
        [("costs 2.55 euros", "kostet 2,55 Euro"), ("1,000 men", "1.000 Mann"), ("at 10:30", "um 10:30")];
    let model = TextModel::train(&pairs, &en, &de);
    let prepared = model.prepare(Side::Source, "3,400.5 at 12:15");
    assert_eq!(model.restore(Side::Target, "⟦num1⟧ um ⟦num2⟧", &prepared), "3.400,5 um 12:15");
    assert_eq!(model.prepare_pair("2.55 x", "2,55 x").1.tokens, "⟦num1⟧ x");
}

#[test]
fn a_stored_model_is_read_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("text.toml");
    let model = model();
    model.save(&path).unwrap();
    let read = TextModel::load(&path).unwrap();
    for line in ["The File Is New", "the Python list", "A LIST OF FILES IS NEW"] {
        assert_eq!(read.prepare(Side::Source, line), model.prepare(Side::Source, line));
    }
    let text = std::fs::read_to_string(&path).unwrap();
    for (from, to, expected) in [
        (
            "rules = 1",
            "rules = 9",
            "has version 9 of the tokenisation rules, but this program has version 1; train the model again",
        ),
        ("language = \"en\"", "language = \"x\"", "`x` is not a language code"),
        ("rules = 1", "", "missing field `rules`"),
    ] {
        std::fs::write(&path, text.replace(from, to)).unwrap();
        let message = TextModel::load(&path).unwrap_err().to_string();
        assert!(message.starts_with(&path.display().to_string()) && message.contains(expected), "{message}");
    }
}

/// Lines in the language of the other side are left out, those with many shared words are not.
#[test]
fn lines_in_the_wrong_language() {
    let english = [
        "the house is very small and the garden is green",
        "we would like to have another house with a garden",
    ];
    let spanish =
        ["la casa es muy pequeña y el jardín es verde", "nos gustaría tener otra casa con un jardín grande"];
    let mut pairs: Vec<(String, String)> = Vec::new();
    for n in 0..60 {
        pairs.push((format!("{} {n}", english[n % 2]), format!("{} {n}", spanish[n % 2])));
    }
    pairs.push((
        "this one has the garden and the house".into(),
        "the house is very small and the garden is green".into(),
    ));
    pairs.push(("Madrid Barcelona 2024".into(), "Madrid Barcelona 2025".into()));
    let cleaning = clean(&mut pairs);
    assert_eq!((cleaning.language, pairs.len()), (1, 61));
}

/// Text with everything that tokenisation looks at.
fn text() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        "[a-zA-Zäé]{1,8}",
        "[0-9]{1,4}([.,:][0-9]{1,3})?",
        "[ .,;:!?'\"()\\[\\]{}<>/%$&@#`*=+_|~^-]{1,3}",
        Just(" ".to_owned()),
        Just("e.g.".to_owned()),
        Just("don't l'eau".to_owned()),
        Just("https://a.b/c?d=(e).".to_owned()),
        Just("<b>x</b>".to_owned()),
        Just("%s{0}".to_owned()),
        "[\u{ffed}\u{2581}\u{2423}\u{27e6}\u{27e7}]",
        "[東京です。，]{1,3}",
        "\\PC{1,4}",
    ];
    prop::collection::vec(part, 0..12).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn tokens_restore_the_line(line in text(), language in prop::sample::select(vec!["en", "fr", "de", "zh", "xx"])) {
        // Marks of tokens in the text are protected spans, which only a model restores.
        let line = normalise(&line.replace([JOINER, '\u{2581}', '\u{2423}', '\u{27e6}', '\u{27e7}'], "-"));
        let tokens = tokeniser(language).tokenise(&line);
        prop_assert_eq!(detokenise(&tokens), line, "{}", tokens);
    }

    #[test]
    fn models_restore_the_line(line in text()) {
        let line = normalise(&line);
        let model = model();
        for side in [Side::Source, Side::Target] {
            let prepared = model.prepare(side, &line);
            prop_assert_eq!(model.restore(side, &prepared.tokens, &prepared), line.clone(), "{}", prepared.tokens);
        }
        let spans = protected_spans(&line);
        prop_assert!(spans.windows(2).all(|s| s[0].end <= s[1].start));
    }

    #[test]
    fn normalising_twice_changes_nothing(line in text()) {
        let once = normalise(&line);
        prop_assert_eq!(normalise(&once), once);
    }
}
