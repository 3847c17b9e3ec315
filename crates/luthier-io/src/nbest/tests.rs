use super::*;
use proptest::prelude::*;
use std::io::Cursor;

fn read_text(text: &[u8], options: &Options) -> Result<Rows> {
    let mut rows = Rows::default();
    read_input(Input::new("n.best", Cursor::new(text.to_vec()))?, options, &mut rows)?;
    Ok(rows)
}

fn plain(text: &str) -> Result<Rows> {
    read_text(text.as_bytes(), &Options::default())
}

/// Segment, text, features sorted by name, and total score of every candidate.
type Flat = Vec<(u32, String, Vec<(String, f64)>, Option<f64>)>;

fn flat(rows: &Rows) -> Flat {
    let order = rows.by_segment(true).unwrap();
    order
        .into_iter()
        .flatten()
        .map(|row| {
            let row = row as usize;
            let mut features: Vec<(String, f64)> =
                rows.named_features(row).map(|(n, v)| (n.to_owned(), v)).collect();
            features.sort_by(|a, b| a.0.cmp(&b.0));
            (rows.segment(row), rows.text(row).to_owned(), features, rows.total(row))
        })
        .collect()
}

/// One data set in every format: the second candidate of segment 0 is empty, segment 1 has one candidate.
#[test]
fn all_formats_give_the_same_rows() {
    let expected: Flat = vec![
        (0, "the house".into(), vec![("lm".into(), -3.25), ("tm".into(), -2.0)], Some(-7.5)),
        (0, String::new(), vec![("lm".into(), -1.0), ("tm".into(), 0.5)], Some(-0.5)),
        (1, "a tree".into(), vec![("lm".into(), 0.0), ("tm".into(), 1e-3)], Some(2.0)),
    ];
    let with_total: &[&str] = &[
        // Moses, with alignments after the score, ids out of order
        "1 ||| a tree ||| lm= 0 tm= 0.001 ||| 2 ||| 0-0=0-0 ||| 0-0\n0 ||| the house ||| lm= -3.25 tm= -2 ||| -7.5 ||| 0-1=0-1\n0 |||  ||| lm= -1 tm= 0.5 ||| -0.5 |||  ||| \n",
        // old Moses and Phrasal: colons, no space before the first `|||`
        "0||| the house ||| lm: -3.25 tm: -2 ||| -7.5\n0|||  ||| lm: -1 tm: 0.5 ||| -0.5\n1||| a tree ||| lm: 0 tm: 0.001 ||| 2\n",
        // cdec, Joshua, old Marian
        "0 ||| the house ||| lm=-3.25 tm=-2 ||| -7.5\n0 |||  ||| lm=-1 tm=0.5 ||| -0.5\n1 ||| a tree ||| tm=0.001 lm=0 ||| 2\n",
        // travatar: the score first
        "0 ||| the house ||| -7.5 ||| lm=-3.25 tm=-2\n0 |||  ||| -0.5 ||| lm=-1 tm=0.5\n1 ||| a tree ||| 2 ||| lm=0 tm=0.001\n",
        // Marian with --alignment and --word-scores
        "0 ||| the house ||| 0-0 1-1 ||| WordScores= -1 -2 -0.5 ||| lm= -3.25 tm= -2 ||| -7.5\n0 |||  |||  ||| WordScores= -1 ||| lm= -1 tm= 0.5 ||| -0.5\n1 ||| a tree ||| 0-0 ||| WordScores= -1 -1 ||| lm= 0 tm= 0.001 ||| 2\n",
        // JSON lines and TSV as written by luthier
        "{\"id\":0,\"text\":\"the house\",\"features\":{\"lm\":-3.25,\"tm\":-2},\"scores\":{\"total\":-7.5}}\n{\"id\":0,\"text\":\"\",\"features\":{\"lm\":-1,\"tm\":0.5},\"scores\":{\"total\":-0.5}}\n{\"id\":1,\"text\":\"a tree\",\"features\":{\"lm\":0,\"tm\":0.001},\"scores\":{\"total\":2}}\n",
        "id\ttext\tlm\ttm\tscore:total\n0\tthe house\t-3.25\t-2\t-7.5\n0\t\t-1\t0.5\t-0.5\n1\ta tree\t0\t0.001\t2\n",
    ];
    for text in with_total {
        assert_eq!(flat(&plain(text).unwrap()), expected, "{text}");
    }
    let without: Flat = expected.iter().cloned().map(|(s, t, f, _)| (s, t, f, None)).collect();
    let others: &[&str] = &[
        // flat JSON, nested JSON, parallel arrays; a BOM, CRLF and no last line end
        "\u{feff}{\"id\":0,\"hyp\":\"the house\",\"lm\":-3.25,\"tm\":-2}\r\n{\"id\":0,\"hyp\":\"\",\"lm\":-1,\"tm\":0.5}\r\n{\"id\":1,\"hyp\":\"a tree\",\"lm\":0,\"tm\":0.001}",
        "{\"src\":\"das haus\",\"hyps\":[{\"text\":\"the house\",\"scores\":{\"lm\":-3.25,\"tm\":-2}},{\"text\":\"\",\"scores\":{\"lm\":-1,\"tm\":0.5}}]}\n{\"hyps\":[{\"text\":\"a tree\",\"scores\":{\"lm\":0,\"tm\":0.001}}]}\n",
        "{\"hyps\":[\"the house\",\"\"],\"lm\":[-3.25,-1],\"tm\":[-2,0.5]}\n{\"hyps\":[\"a tree\"],\"lm\":[0],\"tm\":[0.001]}\n",
        "segment\tlm\ttranslation\ttm\r\n0\t-3.25\tthe house\t-2\r\n0\t-1\t\t0.5\r\n1\t0\ta tree\t0.001",
    ];
    for text in others {
        assert_eq!(flat(&plain(text).unwrap()), without, "{text}");
    }
}

/// The same two segments with the scores `am` and `lm` as today's programs write them; names and order of features are those
/// of the program.
#[test]
fn lists_of_todays_programs() {
    let shapes: &[(&str, &str, &str)] = &[
        // pandas: CSV with quoting and an index; TSV; semicolons
        (
            ",id,text,reference,am,lm,speaker\n0,0,\"a, \"\"b\"\"\",x,-1,-2.5,ann\n1,0,c,x,-2,-0.5,ann\n2,1,d,y z,-3,0,bob\n",
            "id: id; text: text; reference: reference; features: am, lm; ignored: column 1 (without name), speaker (text)",
            "reference",
        ),
        (
            "id\ttext\tam\tlm\n0\t\"a, \"\"b\"\"\"\t-1\t-2.5\n0\tc\t-2\t-0.5\n1\td\t-3\t0\n",
            "id: id; text: text; features: am, lm",
            "",
        ),
        (
            "utt;hyp;am;lm\nu1;\"a, \"\"b\"\"\";-1;-2.5\nu1;c;-2;-0.5\nu2;d;-3;0\n",
            "id: utt; text: hyp; features: am, lm",
            "",
        ),
        // one array per file, ids from 1, pretty-printed
        (
            "[\n  {\"id\": 1, \"text\": \"a, \\\"b\\\"\", \"am\": -1, \"lm\": -2.5, \"ref\": \"x\"},\n  {\"id\": 1, \"text\": \"c\", \"am\": -2, \"lm\": -0.5, \"ref\": \"x\"},\n  {\"id\": 2, \"text\": \"d\", \"am\": -3, \"lm\": 0, \"ref\": \"y z\"}\n]\n",
            "id: id; text: text; reference: ref; features: am, lm",
            "reference",
        ),
        // Hugging Face: one array per line
        (
            "[{\"generated_text\":\"a, \\\"b\\\"\",\"am\":-1,\"lm\":-2.5},{\"generated_text\":\"c\",\"am\":-2,\"lm\":-0.5}]\n[{\"generated_text\":\"d\",\"am\":-3,\"lm\":0}]\n",
            "id: order of the lists; text: generated_text; features: am, lm",
            "",
        ),
        // Hugging Face: sequences with parallel scores
        (
            "{\"sequences\":[\"a, \\\"b\\\"\",\"c\"],\"am\":[-1,-2],\"lm\":[-2.5,-0.5]}\n{\"sequences\":[\"d\"],\"am\":[-3],\"lm\":[0]}\n",
            "id: order of the lists; text: sequences; features: am, lm",
            "",
        ),
        // vLLM
        (
            "{\"request_id\":\"q7\",\"prompt\":\"p\",\"outputs\":[{\"index\":0,\"text\":\"a, \\\"b\\\"\",\"token_ids\":[1,2],\"am\":-1,\"lm\":-2.5,\"logprobs\":null,\"finish_reason\":\"stop\"},{\"index\":1,\"text\":\"c\",\"token_ids\":[1],\"am\":-2,\"lm\":-0.5,\"logprobs\":null,\"finish_reason\":\"stop\"}]}\n{\"request_id\":\"q8\",\"prompt\":\"p\",\"outputs\":[{\"index\":0,\"text\":\"d\",\"token_ids\":[3],\"am\":-3,\"lm\":0,\"logprobs\":null,\"finish_reason\":\"stop\"}]}\n",
            "id: request_id; text: text; features: am, lm; ignored: prompt (text), token_ids (array), finish_reason (text), logprobs (null)",
            "",
        ),
        // NeMo: manifest with one hypothesis per line
        (
            "{\"audio_filepath\":\"1.wav\",\"text\":\"x\",\"pred_text\":\"a, \\\"b\\\"\",\"am\":-1,\"lm\":-2.5}\n{\"audio_filepath\":\"1.wav\",\"text\":\"x\",\"pred_text\":\"c\",\"am\":-2,\"lm\":-0.5}\n{\"audio_filepath\":\"2.wav\",\"text\":\"y z\",\"pred_text\":\"d\",\"am\":-3,\"lm\":0}\n",
            "id: audio_filepath; text: pred_text; reference: text; features: am, lm",
            "reference",
        ),
        // NeMo: beams
        (
            "{\"audio_filepath\":\"1.wav\",\"duration\":2.5,\"text\":\"x\",\"beams\":[{\"text\":\"a, \\\"b\\\"\",\"am\":-1,\"lm\":-2.5},{\"text\":\"c\",\"am\":-2,\"lm\":-0.5}]}\n{\"audio_filepath\":\"2.wav\",\"duration\":1,\"text\":\"y z\",\"beams\":[{\"text\":\"d\",\"am\":-3,\"lm\":0}]}\n",
            "id: audio_filepath; text: text; reference: text; features: am, lm; ignored: duration (number)",
            "reference",
        ),
        // HyPoradise
        (
            "[{\"id\":0,\"input\":[\"a, \\\"b\\\"\",\"c\"],\"output\":\"x\",\"am\":[-1,-2],\"lm\":[-2.5,-0.5],\"attention\":[[1,2],[3,4]]},{\"id\":1,\"input\":[\"d\"],\"output\":\"y z\",\"am\":[-3],\"lm\":[0],\"attention\":[[1]]}]",
            "id: id; text: input; reference: output; features: am, lm; ignored: attention (matrix)",
            "reference",
        ),
    ];
    let expected = [("a, \"b\"", -1.0, -2.5), ("c", -2.0, -0.5), ("d", -3.0, 0.0)];
    for (text, usage, reference) in shapes {
        let mut rows = plain(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        rows.count_from_zero();
        assert_eq!(rows.files[0].usage.as_ref().unwrap().to_string(), *usage, "{text}");
        assert_eq!(rows.by_segment(false).unwrap(), [vec![0, 1], vec![2]], "{text}");
        for (row, (words, am, lm)) in expected.iter().enumerate() {
            assert_eq!(rows.text(row), *words, "{text}");
            assert_eq!(rows.named_features(row).collect::<Vec<_>>(), [("am", *am), ("lm", *lm)], "{text}");
        }
        let references: &[Vec<String>] =
            if reference.is_empty() { &[] } else { &[vec!["x".to_owned(), "y z".to_owned()]] };
        assert_eq!(rows.references().unwrap(), references, "{text}");
    }
}

#[test]
fn log_probabilities_of_tokens_and_segments() {
    let openai = "{\"custom_id\":\"a\",\"response\":{\"body\":{\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"hi\"},\"logprobs\":{\"content\":[{\"token\":\"h\",\"logprob\":-1},{\"token\":\"i\",\"logprob\":-2}]}}]}}}\n";
    let rows = plain(openai).unwrap();
    assert_eq!((rows.text(0), rows.id(0)), ("hi", "a".to_owned()));
    assert_eq!(rows.named_features(0).collect::<Vec<_>>(), [("logprob", -3.0), ("mean_logprob", -1.5)]);
    let completion = "{\"choices\":[{\"index\":0,\"text\":\"hi\",\"logprobs\":{\"tokens\":[\"h\"],\"token_logprobs\":[null,-4]}}]}";
    let rows = plain(completion).unwrap();
    assert_eq!(rows.named_features(0).collect::<Vec<_>>(), [("logprob", -4.0), ("mean_logprob", -4.0)]);
    let whisper = "{\"id\":\"u\",\"text\":\"hi\",\"segments\":[{\"avg_logprob\":-1,\"no_speech_prob\":0.5},{\"avg_logprob\":-3,\"no_speech_prob\":0.25}],\"language\":\"en\"}\n";
    let rows = plain(whisper).unwrap();
    assert_eq!(
        rows.named_features(0).collect::<Vec<_>>(),
        [("avg_logprob", -2.0), ("no_speech_prob", 0.375)]
    );
}

#[test]
fn names_of_segments_are_kept() {
    let text = "utt b ||| x ||| lm= 1 ||| 1\nutt a ||| y ||| lm= 2 ||| 2\nutt b ||| z ||| lm= 3 ||| 3\n";
    let rows = plain(text).unwrap();
    assert_eq!(rows.by_segment(false).unwrap(), [vec![0, 2], vec![1]]);
    for to in [To::Moses, To::Json, To::Tsv] {
        let again = read_text(&write(&rows, to).unwrap(), &Options::default()).unwrap();
        assert_eq!(flat(&again), flat(&rows));
        assert_eq!((again.id(0), again.id(1)), ("utt b".to_owned(), "utt a".to_owned()));
    }
    let mut both = rows;
    both.append(plain("utt a ||| w ||| lm= 4 ||| 4\n").unwrap()).unwrap();
    assert_eq!(both.by_segment(false).unwrap(), [vec![0, 2], vec![1, 3]]);
    let numbers = plain("0 ||| w ||| lm= 4 ||| 4\n").unwrap();
    let said = both.append(numbers).unwrap_err().to_string();
    assert_eq!(
        said,
        "n.best: has numbers as ids of segments, but the files before have names; give all files the same ids"
    );
}

#[test]
fn values_without_labels_and_keys_with_ranks() {
    let rows = plain("0 ||| x ||| -1 2.5 ||| 1\n1 ||| y ||| 0 1e3\n").unwrap();
    assert_eq!(rows.named_features(1).collect::<Vec<_>>(), [("feature[0]", 0.0), ("feature[1]", 1000.0)]);
    let kaldi = plain("ann-12-1 a b\nann-12-2 c\nbob-3-1 d\n").unwrap();
    assert_eq!(kaldi.by_segment(false).unwrap(), [vec![0, 1], vec![2]]);
    assert_eq!((kaldi.text(0), kaldi.id(1)), ("a b", "bob-3".to_owned()));
    let dir = tempfile::tempdir().unwrap();
    for (n, text, score) in
        [(1, "u1 a b\nu2 d\n", "u1 tensor(-1.5)\nu2 tensor(-3)\n"), (2, "u1 c\n", "u1 tensor(-2)\n")]
    {
        let place = dir.path().join(format!("{n}best_recog"));
        std::fs::create_dir(&place).unwrap();
        std::fs::write(place.join("text"), text).unwrap();
        std::fs::write(place.join("score"), score).unwrap();
        std::fs::write(place.join("token"), text).unwrap();
    }
    let mut rows = Rows::default();
    read(dir.path(), &Options::default(), &mut rows).unwrap();
    assert_eq!(rows.by_segment(false).unwrap(), [vec![0, 2], vec![1]]);
    assert_eq!(rows.named_features(2).collect::<Vec<_>>(), [("score", -2.0)]);
    let usage = rows.files[0].usage.as_ref().unwrap().to_string();
    assert_eq!(usage, "id: key; text: words after the key; features: score; ignored: token (text)");
}

#[test]
fn columns_can_be_chosen_and_missing_numbers_given() {
    let text = "key,source,mt1,mt2,am,lm,conf\nk,s,one,two,1,2,\nk,s,three,four,3,4,0.5\n";
    let name = |n: &str| Some(n.to_owned());
    let columns = Columns {
        id: name("key"),
        text: name("mt2"),
        reference: name("source"),
        features: vec!["am".into(), "conf".into()],
        ..Columns::default()
    };
    let options = Options { columns, missing: vec![("conf".into(), -1.0)], ..Options::default() };
    let rows = read_text(text.as_bytes(), &options).unwrap();
    assert_eq!((rows.text(0), rows.text(1)), ("two", "four"));
    assert_eq!(rows.named_features(0).collect::<Vec<_>>(), [("am", 1.0), ("conf", -1.0)]);
    assert_eq!(rows.references().unwrap(), [vec!["s".to_owned()]]);
    let usage = rows.files[0].usage.as_ref().unwrap().to_string();
    assert_eq!(
        usage,
        "id: key; text: mt2; reference: source; features: am, conf; ignored: mt1 (text), lm (number)"
    );
    let other =
        Options { columns: Columns { text: name("mt3"), ..Columns::default() }, ..Options::default() };
    let said = read_text(text.as_bytes(), &other).unwrap_err().to_string();
    assert_eq!(
        said,
        "n.best:1: no column is called mt3; there are: key, source, mt1, mt2, am, lm, conf; check --text-column"
    );
}

#[test]
fn blocks_sparse_features_and_equals_signs_in_names() {
    let rows =
        plain("0 ||| x ||| TM0= -2.1 -1.9 WT_a=b= 1 p=q=2 ||| 1\n0 ||| y ||| TM0= 0 1 ||| 1\n").unwrap();
    let first: Vec<_> = rows.named_features(0).collect();
    assert_eq!(first, [("TM0[0]", -2.1), ("TM0[1]", -1.9), ("WT_a=b", 1.0), ("p=q", 2.0)]);
}

#[test]
fn fairseq_in_natural_logarithms() {
    let log = "2024 | INFO | loading\nS-1\tein baum\nT-1\ta tree\nH-1\t-1.0\ta@@ tree\nD-1\t-1.0\ta tree\nP-1\t-0.5 -1.5\n\
               S-0\thaus\nH-0\t-2\thouse\nP-0\t-2.0\nH-0\t-3\t\nP-0\t-3.0\n| Generate test\n";
    let ln2 = std::f64::consts::LN_2;
    let f = |score: f64, logprob: f64, length: f64| {
        vec![
            ("length".to_owned(), length),
            ("logprob".to_owned(), logprob * ln2),
            ("score".to_owned(), score * ln2),
        ]
    };
    let expected: Flat = vec![
        (0, "house".into(), f(-2.0, -2.0, 1.0), None),
        (0, String::new(), f(-3.0, -3.0, 1.0), None),
        (1, "a tree".into(), f(-1.0, -2.0, 2.0), None),
    ];
    assert_eq!(flat(&plain(log).unwrap()), expected);
}

#[test]
fn flat_text_nemo_and_extractor_files() {
    let options = Options { dialect: None, per_source: Some(2), ..Options::default() };
    let rows = read_text(b"a\nb\n\nd\n", &options).unwrap();
    assert_eq!(
        (0..4).map(|r| (rows.segment(r), rows.text(r))).collect::<Vec<_>>(),
        [(0, "a"), (0, "b"), (1, ""), (1, "d")]
    );
    let nemo = read_text(b"a b\t-1.5\nc\t-2\n", &options).unwrap();
    assert_eq!(nemo.named_features(1).collect::<Vec<_>>(), [("score", -2.0)]);
    let feats = plain("FEATURES_TXT_BEGIN_0 0 2 2 d_0 LM0_0\n0 -1.5 WT_a~b=1\n1 -2\nFEATURES_TXT_END_0\nFEATURES_TXT_BEGIN_0 1 1 2 d_0 LM0_0\n3 4\nFEATURES_TXT_END_0\n").unwrap();
    assert_eq!(feats.named_features(0).collect::<Vec<_>>(), [("d_0", 0.0), ("LM0_0", -1.5), ("WT_a~b", 1.0)]);
    assert_eq!((feats.len(), feats.segment(2)), (3, 1));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    std::fs::write(&path, "SCORES_TXT_BEGIN_0 0 1 9 BLEU\n3 4 1 3 0 2 0 1 5\nSCORES_TXT_END_0\n").unwrap();
    assert_eq!(read_scores(&path).unwrap(), [(0, [3., 1., 0., 0., 4., 3., 2., 1., 5.])]);
}

/// Complete error messages; the test reports all that differ.
#[test]
fn mistakes() {
    let wrong = std::cell::RefCell::new(Vec::new());
    let fails = |text: &str, expected: &str| {
        let message = plain(text).map_or_else(|e| e.to_string(), |_| "no error".to_owned());
        let expected = format!("n.best:{expected}");
        if message != expected {
            wrong.borrow_mut().push(format!("{text}\n  found    {message}\n  expected {expected}"));
        }
    };
    let second = |line: &str, expected: &str| {
        fails(&format!("0 ||| a ||| LM= 1 TM= 1 2 ||| 3\n{line}\n"), &format!("2: {expected}"));
    };
    fails(
        "0 ||| a ||| b ||| LM= 1 ||| 2\n",
        "1: the features begin with `b`, expected a label such as `LM0=`; the text must not contain `|||`",
    );
    let many = plain("4 ||| a ||| 0-0 ||| 1-1 ||| 2-2 ||| 3-3 ||| 4-4 ||| g= 1 ||| 2\n").unwrap();
    assert_eq!(many.named_features(0).collect::<Vec<_>>(), [("g", 1.0)]);
    second("1 ||| b", "found 2 fields, expected `id ||| text ||| features ||| score`");
    second(
        "x ||| b ||| LM= 1 ||| 2",
        "the segment id is `x`, expected a whole number from 0; number the segments in the order of the references",
    );
    second(
        "-1 ||| b ||| LM= 1 ||| 2",
        "the segment id is `-1`, expected a whole number from 0; number the segments in the order of the references",
    );
    for bad in ["NaN", "inf", "-infinity", "1e999", "0x1", "1,5"] {
        second(
            &format!("1 ||| b ||| LM= {bad} ||| 2"),
            &format!(
                "the value of LM is `{bad}`, expected a finite number; replace it, or remove the candidate"
            ),
        );
        second(
            &format!("1 ||| b ||| LM={bad} ||| 2"),
            &format!(
                "the value of LM is `{bad}`, expected a finite number; replace it, or remove the candidate"
            ),
        );
    }
    second("1 ||| b ||| LM= ||| 2", "LM has 0 values here and 1 in line 1");
    second("1 ||| b ||| LM= 1 LM= 1 ||| 2", "the feature LM occurs twice; remove one of the two");
    second("1 ||| b ||| TM= 1 2 3 ||| 2", "TM has 3 values here and 2 in line 1");
    second(
        "1 ||| b ||| LM: 1 ||| 2",
        "the label `LM:` does not end like the labels before it; end all labels of a file in `=` or all in `:`",
    );
    second(
        "1 ||| b ||| c ||| LM= 1 ||| 2",
        "the features begin with `c`, expected a label such as `LM0=`; the text must not contain `|||`",
    );
    second(
        "1 ||| b ||| LM= 1 ||| two",
        "the total score is `two`, expected a finite number; the text must not contain `|||`",
    );
    fails("", " holds no candidate, expected an n-best list");
    fails(
        "hello\nworld\n",
        "1: found `hello`, which is not a recognised n-best format; give --per-source N for plain text with N lines per segment, name the text of a table with --text-column, or set --nbest-format; is this a file of references or weights?",
    );
    fails(
        "{\"id\":0,\"text\":\"a\"",
        "1: invalid JSON at column 18: EOF while parsing an object; write one JSON value per line, or one array per file",
    );
    fails(
        "{\"id\":0,\"features\":{}}\n",
        "1: the candidate has no text; its keys are: id, features; name the text with --text-column NAME, or call it `text`",
    );
    fails(
        "{\"id\":0,\"text\":\"a\",\"features\":{\"x\":\"y\"}}\n",
        "1: the value of x is \"y\", expected a finite number",
    );
    fails(
        "{\"id\":[1],\"text\":\"a\"}\n",
        "1: `id` is an array, expected a segment number or name; number the segments from 0, or name them",
    );
    fails(
        "{\"id\":0,\"text\":\"a\",\"hyp\":\"b\",\"lm\":1}\n",
        "1: `text` and `hyp` could all be the text of the candidate; name it with --text-column NAME, and the reference with --reference-column NAME",
    );
    fails(
        "{\"id\":0,\"text\":\"a\",\"lm\":1}\n{\"id\":0,\"text\":\"b\",\"lm\":null}\n{\"id\":1,\"text\":\"c\"}\n",
        "2: 2 of 3 candidates have no lm, this one is the first; give a value for them with --missing lm=VALUE, or leave the column out with --ignore-columns lm",
    );
    fails(
        "id,text,lm\n0,a,1\n0,b,\n",
        "3: 1 of 2 candidates has no lm, this one is the first; give a value for them with --missing lm=VALUE, or leave the column out with --ignore-columns lm",
    );
    fails(
        "{\"id\":0,\"text\":\"a\",\"ref\":\"x\"}\n{\"id\":0,\"text\":\"b\",\"ref\":\"y\"}\n",
        "2: segment 0 has two different references; give several references of a segment as an array",
    );
    fails(
        "[{\"generated_text\": \"a\", \"score\": \"high\"}]\n[3]\n",
        "2: `array` holds 3, expected candidates",
    );
    fails(
        "id,text,lm\n0,a,1\n0,b,x\n",
        "3: the value of lm is `x`, expected a finite number; replace it, or remove the candidate",
    );
    fails(
        "{\"id\":0,\"text\":\"a\",\"lm\":1,\"lm\":2}\n",
        "1: invalid JSON at column 33: the key \"lm\" occurs twice",
    );
    fails(
        "{\"text\":\"a\",\"lm\":1}\n",
        "1: the candidate has no segment number; add an `id`, name its column with --id-column, or give --per-source N",
    );
    fails(
        "{\"id\":0,\"text\":\"a\",\"scores\":1}\n",
        "1: `scores` is 1, expected an object of names and numbers",
    );
    fails("{\"id\":0,\"text\":\"a\",\"features\":{\"\":1}}\n", "1: a feature has an empty name; rename it");
    fails(
        "{\"id\":0,\"text\":\"a\",\"features\":{\"a\\nb\":1}}\n",
        "1: the feature name \"a\\nb\" contains a control character or `|||`; rename it",
    );
    fails("{\"hyps\":[\"a\",\"b\"],\"lm\":[1]}\n", "1: `lm` has 1 numbers for 2 candidates");
    fails("{\"id\":0,\"text\":\"a\",\"lm\":1e999}\n", "1: invalid JSON at column 29: number out of range");
    fails("id\ttext\tlm\n0\ta\n", "2: found 2 columns, expected 3");
    fails(
        "text\tlm\na\t1\n",
        "2: the candidate has no segment number; add an `id`, name its column with --id-column, or give --per-source N",
    );
    fails("id\ttext\tlm\tlm\n", "1: two columns are named lm");
    fails(
        "FEATURES_TXT_BEGIN_0 0 2 1 a\n1\n",
        "3: the file ends inside a block; it is truncated; create it again",
    );
    fails(
        "FEATURES_BIN_BEGIN_0 0 2 1 a\n",
        "1: found `FEATURES_BIN_BEGIN_0`, expected `FEATURES_TXT_BEGIN_0`; write it in text form, without --binary",
    );
    let bytes = read_text(b"0 ||| a ||| x= 1 ||| 1\n0 ||| \xff ||| x= 1 ||| 1\n", &Options::default());
    assert_eq!(
        bytes.unwrap_err().to_string(),
        "n.best:2: byte 7 of the line (0xff) is not UTF-8; convert the file to UTF-8, with iconv for instance"
    );
    let three =
        read_text(b"a\nb\nc\n", &Options { dialect: None, per_source: Some(2), ..Options::default() });
    assert_eq!(
        three.unwrap_err().to_string(),
        "n.best:3: the file has 3 candidates, which is not a multiple of 2; every segment needs exactly --per-source candidates"
    );
    let far = plain("9999999 ||| a ||| x= 1 ||| 1\n").unwrap().by_segment(false);
    assert_eq!(
        far.unwrap_err().to_string(),
        "n.best: segment 0 has no candidate; segments are numbered from 0; --allow-missing skips segments without candidates"
    );
    let wrong = wrong.into_inner();
    assert!(wrong.is_empty(), "{} messages differ:\n\n{}", wrong.len(), wrong.join("\n\n"));
}

fn write(rows: &Rows, to: To) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let mut writer = Writer::new(rows, to, rows.has_totals(), &mut out, "out")?;
    for row in 0..rows.len() {
        writer.write(row, None)?;
    }
    drop(writer);
    Ok(out)
}

/// A random candidate: segment, text, features with a few names, optional total and optional score.
type Drawn = (u8, String, Vec<(u8, f64)>, Option<f64>, Option<f64>);

fn candidate() -> impl Strategy<Value = Drawn> {
    let number = prop_oneof![-1e6..1e6f64, Just(0.0), Just(1e-300), Just(-0.125)];
    let features =
        prop::collection::btree_map(0u8..10, number.clone(), 0..6).prop_map(|m| m.into_iter().collect());
    (
        0u8..4,
        "[a-zäß中😀 .|\\\\\"]{0,12}",
        features,
        prop::option::of(number.clone()),
        prop::option::of(number),
    )
}

proptest! {
    #[test]
    fn reading_what_was_written_is_the_identity(candidates in prop::collection::vec(candidate(), 1..12)) {
        const NAMES: [&str; 10] = ["lm", "TM[0]", "TM[1]", "WT_a~b", "p=q", "größe", "index", "text", "score:total", "TM"];
        let mut text = String::new();
        for (id, words, features, total, comet) in &candidates {
            let mut scores = serde_json::Map::new();
            if let Some(t) = total { scores.insert("total".into(), (*t).into()); }
            if let Some(c) = comet { scores.insert("comet".into(), (*c).into()); }
            let features: serde_json::Map<_, _> =
                features.iter().map(|(n, v)| (NAMES[*n as usize].to_owned(), (*v).into())).collect();
            text += &serde_json::json!({"id": id, "text": words.trim(), "features": features, "scores": scores}).to_string();
            text.push('\n');
        }
        let rows = plain(&text).unwrap();
        let scores = |rows: &Rows| -> Vec<Vec<(String, f64)>> {
            (0..rows.len()).map(|r| rows.named_scores(r).map(|(n, v)| (n.to_owned(), v)).collect()).collect()
        };
        for to in [To::Json, To::Tsv] {
            let again = read_text(&write(&rows, to).unwrap(), &Options::default()).unwrap();
            // A table has a number for every feature; a feature that a candidate does not have is 0.
            let without_zeros = |rows: &Rows| -> Flat {
                let mut all = flat(rows);
                for row in &mut all {
                    row.2.retain(|f| f.1 != 0.0);
                }
                all
            };
            prop_assert_eq!(without_zeros(&again), without_zeros(&rows));
            prop_assert_eq!(scores(&again), scores(&rows));
        }
        match write(&rows, To::Moses) {
            Err(e) => prop_assert!(e.to_string().contains("Moses' format")),
            Ok(written) => {
                let options = Options { dialect: Some(Dialect::Bars), per_source: None, ..Options::default() };
                prop_assert_eq!(flat(&read_text(&written, &options).unwrap()), flat(&rows));
            }
        }
    }

    /// Arbitrary bytes, and fragments of n-best lists, give rows or an error, never a panic.
    #[test]
    fn arbitrary_bytes_never_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        pieces in prop::collection::vec(prop::sample::select(vec![
            "0", "1", " ||| ", "|||", "a", "LM=", "LM=1", "d:", " ", "\t", "\n", "-1.5", "nan", "{", "}", "\"id\"", ":", ",",
            "\"text\"", "[", "]", "\"hyps\"", "\"scores\"", "H-0\t", "P-0\t", "D-1\t", "text", "id", "FEATURES_TXT_BEGIN_0 0 1 1 a",
            "FEATURES_TXT_END_0", "1e999", "\u{feff}", "ä", "\r", "9999999", "\0",
        ]), 0..40),
        per_source in prop::option::of(1u32..4),
    ) {
        for input in [bytes, pieces.concat().into_bytes()] {
            for dialect in std::iter::once(None).chain(Dialect::NAMES.iter().map(|n| Some(n.1))) {
                if let Ok(rows) = read_text(&input, &Options { dialect, per_source, ..Options::default() }) {
                    let _ = rows.by_segment(false);
                    for to in [To::Moses, To::Json, To::Tsv] {
                        let _ = write(&rows, to);
                    }
                }
            }
        }
    }
}
