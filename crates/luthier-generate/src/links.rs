//! Tokens with marks, and the gold links that follow from them.
//!
//! German and English say the same tree in different orders and with different numbers of words, so links
//! cannot be told from positions. Instead every node of the tree owns a block of [`mark::BLOCK`] marks, and
//! every token carries the marks of what it expresses. Two tokens are linked if they share a mark. A token
//! without marks, such as the "of" in "a glass of water", is linked to nothing.

/// Marks within the block of a node.
pub(crate) mod mark {
    /// How many marks a node owns.
    pub(crate) const BLOCK: u32 = 16;

    /// The noun, name or pronoun of a noun phrase.
    pub(crate) const NOUN: u32 = 0;
    /// The determiner of a noun phrase.
    pub(crate) const DETERMINER: u32 = 1;
    /// The first adjective of a noun phrase; further ones follow.
    pub(crate) const ADJECTIVE: u32 = 2;
    /// The preposition before a noun phrase, or what makes it a genitive.
    pub(crate) const PREPOSITION: u32 = 5;
    /// The "and" after a noun phrase.
    pub(crate) const AND: u32 = 6;

    /// The verb of a clause.
    pub(crate) const VERB: u32 = 0;
    /// The finite helper of a clause.
    pub(crate) const FINITE: u32 = 1;
    /// The negation of a clause.
    pub(crate) const NOT: u32 = 2;
    /// "gern" and "like to".
    pub(crate) const GLADLY: u32 = 3;
    /// The helper of the passive.
    pub(crate) const PASSIVE: u32 = 4;
    /// "zu" before an infinitive.
    pub(crate) const TO: u32 = 5;

    /// The adjective of a predicate.
    pub(crate) const PREDICATE: u32 = 0;
    /// The degree before an adjective.
    pub(crate) const DEGREE: u32 = 1;
    /// "als" after a comparative.
    pub(crate) const THAN: u32 = 2;

    /// The full stop or question mark of a sentence.
    pub(crate) const STOP: u32 = 14;
    /// The comma at a conjunction.
    pub(crate) const COMMA: u32 = 15;
}

/// A word and the marks of what it expresses.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) text: String,
    pub(crate) marks: Vec<u32>,
}

/// A sentence or a part of one, as tokens.
#[derive(Clone, Debug, Default)]
pub(crate) struct Line(Vec<Token>);

impl Line {
    /// A line without tokens.
    pub(crate) fn new() -> Self {
        Line::default()
    }

    /// The words of a text, all with the same marks.
    pub(crate) fn of(text: &str, marks: &[u32]) -> Self {
        let mut line = Line::new();
        line.put(text, marks);
        line
    }

    /// The words of an expression in the notation of the lexicon, such as `am_1 abend_2`.
    pub(crate) fn marked(text: &str, mark: u32) -> Self {
        let mut line = Line::new();
        line.put_marked(text, mark);
        line
    }

    /// Appends the words of a text, all with the same marks. The word "~" stands for nothing.
    pub(crate) fn put(&mut self, text: &str, marks: &[u32]) {
        for word in text.split_whitespace().filter(|word| *word != "~") {
            self.0.push(Token { text: word.to_string(), marks: marks.to_vec() });
        }
    }

    /// Appends an expression in the notation of the lexicon; its marks are counted from the given one.
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

    /// Whether there are no tokens.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The first token.
    pub(crate) fn first(&self) -> Option<&Token> {
        self.0.first()
    }

    /// The first token, to change it.
    pub(crate) fn first_mut(&mut self) -> Option<&mut Token> {
        self.0.first_mut()
    }

    /// The last token.
    pub(crate) fn last(&self) -> Option<&Token> {
        self.0.last()
    }

    /// The last token, to change it.
    pub(crate) fn last_mut(&mut self) -> Option<&mut Token> {
        self.0.last_mut()
    }

    /// Takes away the first token.
    pub(crate) fn remove_first(&mut self) {
        self.0.remove(0);
    }

    /// Drops commas that end up before other punctuation.
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

    /// The sorted positions of tokens here and in another line that share a mark.
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

    /// The tokens without their marks.
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
