//! What goes to standard error.
#![allow(clippy::print_stderr)]

/// Lines to standard error, unless `--quiet`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Talk {
    pub(crate) quiet: bool,
}

impl Talk {
    /// A line of progress.
    pub(crate) fn say(self, line: &str) {
        if !self.quiet {
            eprintln!("{line}");
        }
    }

    /// Something that works but is probably not meant.
    pub(crate) fn warn(self, line: &str) {
        self.say(&format!("luthier: warning: {line}"));
    }
}

/// `1,234,567`.
pub(crate) fn thousands(n: usize) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, d) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(d);
    }
    out
}
