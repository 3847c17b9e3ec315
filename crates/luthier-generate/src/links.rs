//! Tokens with marks, and the gold word alignment that follows from them.
//!
//! German and English realise the same tree in different orders and with different numbers of words, so links
//! do not follow from positions. Instead, every node of the tree has a block of [`mark::BLOCK`] marks, and
//! every token has the marks of the parts of nodes that it expresses. Two tokens are linked if they have a
//! mark in common. A token without marks, such as "of" in "a glass of water", has no links.

/// Marks of the parts of a node, relative to the first mark of its block.
pub(crate) mod mark {
    /// Number of marks of a node.
    pub(crate) const BLOCK: u32 = 16;

    /// Mark of the noun, name or pronoun of a noun phrase.
    pub(crate) const NOUN: u32 = 0;
    /// Mark of the determiner of a noun phrase.
    pub(crate) const DETERMINER: u32 = 1;
    /// Mark of the first adjective of a noun phrase; those of further ones follow.
    pub(crate) const ADJECTIVE: u32 = 2;
    /// Mark of the preposition before a noun phrase, or of the sign of its genitive.
    pub(crate) const PREPOSITION: u32 = 5;
    /// Mark of the "and" after a noun phrase.
    pub(crate) const AND: u32 = 6;

    /// Mark of the verb of a clause.
    pub(crate) const VERB: u32 = 0;
    /// Mark of the finite auxiliary of a clause.
    pub(crate) const FINITE: u32 = 1;
    /// Mark of the negation of a clause.
    pub(crate) const NOT: u32 = 2;
    /// Mark of "gern" and "like to".
    pub(crate) const GLADLY: u32 = 3;
    /// Mark of the auxiliary of the passive.
    pub(crate) const PASSIVE: u32 = 4;
    /// Mark of "zu" before an infinitive.
    pub(crate) const TO: u32 = 5;

    /// Mark of the adjective of a predicate.
    pub(crate) const PREDICATE: u32 = 0;
    /// Mark of the degree adverb before an adjective.
    pub(crate) const DEGREE: u32 = 1;
    /// Mark of "als" after a comparative.
    pub(crate) const THAN: u32 = 2;

    /// Mark of the full stop or question mark of a sentence.
    pub(crate) const STOP: u32 = 14;
    /// Mark of the comma at a conjunction.
    pub(crate) const COMMA: u32 = 15;
}

/// A token with the marks of the parts of the tree that it expresses.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) text: String,
    pub(crate) marks: Vec<u32>,
}

/// Tokens of a sentence or of a part of one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Line(Vec<Token>);

impl Line {
    /// Returns a line without tokens.
    pub(crate) fn new() -> Self {
        Line::default()
    }

    /// Returns the words of a text, all with the same marks.
    pub(crate) fn of(text: &str, marks: &[u32]) -> Self {
        let mut line = Line::new();
        line.put(text, marks);
        line
    }

    /// Returns the words of an expression in the notation of the lexicon, such as `am_1 abend_2`; `mark` is
    /// added to its marks.
    pub(crate) fn marked(text: &str, mark: u32) -> Self {
        let mut line = Line::new();
        line.put_marked(text, mark);
        line
    }

    /// Appends the words of a text, all with the same marks; the word "~" is skipped.
    pub(crate) fn put(&mut self, text: &str, marks: &[u32]) {
        for word in text.split_whitespace().filter(|word| *word != "~") {
            self.0.push(Token { text: word.to_string(), marks: marks.to_vec() });
        }
    }

    /// Appends an expression in the notation of the lexicon; `mark` is added to its marks.
    pub(crate) fn put_marked(&mut self, text: &str, mark: u32) {
        for word in text.split(' ') {
            let (text, digits) = word.split_once('_').unwrap_or((word, "0"));
            let marks: Vec<u32> =
                digits.chars().filter_map(|digit| digit.to_digit(10)).map(|digit| mark + digit).collect();
            self.put(text, &marks);
        }
    }

    /// Appends another line.
    pub(crate) fn append(&mut self, other: Line) {
        self.0.extend(other.0);
    }

    /// Returns whether there are no tokens.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the first token; `None` if there are none.
    pub(crate) fn first(&self) -> Option<&Token> {
        self.0.first()
    }

    /// Returns the first token for modification; `None` if there are none.
    pub(crate) fn first_mut(&mut self) -> Option<&mut Token> {
        self.0.first_mut()
    }

    /// Returns the last token; `None` if there are none.
    pub(crate) fn last(&self) -> Option<&Token> {
        self.0.last()
    }

    /// Returns the last token for modification; `None` if there are none.
    pub(crate) fn last_mut(&mut self) -> Option<&mut Token> {
        self.0.last_mut()
    }

    /// Removes the first token. Panics if there are none.
    pub(crate) fn remove_first(&mut self) {
        self.0.remove(0);
    }

    /// Returns the line without commas that precede other punctuation.
    pub(crate) fn tidy(self) -> Self {
        let mut out: Vec<Token> = Vec::with_capacity(self.0.len());
        for token in self.0 {
            let closes = matches!(token.text.as_str(), "," | "." | "?");
            if closes && out.last().is_some_and(|last| last.text == ",") {
                out.pop();
            }
            out.push(token);
        }
        Line(out)
    }

    /// Returns the links to another line: sorted pairs of positions of tokens that have a mark in common.
    pub(crate) fn links(&self, target: &Line) -> Vec<(u32, u32)> {
        let mut links = Vec::new();
        for (i, from) in (0..).zip(&self.0) {
            for (j, to) in (0..).zip(&target.0) {
                if from.marks.iter().any(|mark| to.marks.contains(mark)) {
                    links.push((i, j));
                }
            }
        }
        links
    }

    /// Returns the texts of the tokens.
    pub(crate) fn into_texts(self) -> Vec<String> {
        self.0.into_iter().map(|token| token.text).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_share_a_mark_are_linked() {
        let german = Line::marked("heute_1 abend_2", 16);
        assert_eq!(german.links(&Line::marked("this_1 evening_2", 16)), [(0, 0), (1, 1)]);
        assert_eq!(german.links(&Line::marked("tonight_12", 16)), [(0, 0), (1, 0)]);
        assert_eq!(german.links(&Line::marked("tonight_12", 32)), []);
        assert_eq!(german.links(&Line::marked("the_- evening_2", 16)), [(1, 1)]);
    }

    #[test]
    fn commas_before_punctuation_are_dropped() {
        assert_eq!(Line::of("ja , , nein , .", &[]).tidy().into_texts(), ["ja", ",", "nein", "."]);
    }
}
