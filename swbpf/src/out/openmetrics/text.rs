//! The two formats, line by line.

use std::fmt::Write;

use super::{
    Format,
    families::{Family, Kind, Number, Samples},
};

/// A text that grows.
pub struct Text {
    format: Format,
    told: String,
    /// What stands before the first sample of the family under way.
    head: String,
    name: String,
}

impl Text {
    /// An empty one.
    pub fn new(format: Format) -> Self {
        Self {
            format,
            told: String::new(),
            head: String::new(),
            name: String::new(),
        }
    }

    /// Begins a family. One without a sample leaves nothing.
    pub fn family<T>(&mut self, family: &Family<T>) {
        self.name = family.sample_name();
        let (name, kind, help) = (self.name.as_str(), family.kind.name(), family.help);
        self.head = match self.format {
            // A counter's family has the name without its end, and a name may tell its unit apart.
            Format::OpenMetrics => {
                let name = family.name;
                let unit = match family.unit {
                    "" => String::new(),
                    unit => format!("# UNIT {name} {unit}\n"),
                };
                format!("# TYPE {name} {kind}\n{unit}# HELP {name} {help}\n")
            }
            Format::Prometheus => format!("# HELP {name} {help}\n# TYPE {name} {kind}\n"),
        };
    }

    /// Adds what is known of one thing.
    pub fn samples<T>(&mut self, family: &Family<T>, of: &T, labels: &[(&str, &str)]) {
        match family.samples {
            Samples::One(number) => {
                if let Some(number) = number(of) {
                    self.sample(labels, &[], number);
                }
            }
            Samples::Labelled(_, each) => each(of, &mut |own, number| self.sample(labels, own, number)),
        }
    }

    fn sample(&mut self, labels: &[(&str, &str)], own: &[(&str, &str)], number: Number) {
        if matches!(number, Number::Real(real) if !real.is_finite()) {
            return;
        }
        self.told.push_str(&std::mem::take(&mut self.head));
        self.told.push_str(&self.name);
        let mut open = '{';
        for (name, value) in labels.iter().chain(own) {
            self.told.push(open);
            self.told.push_str(name);
            self.told.push_str("=\"");
            for c in value.chars() {
                match c {
                    '\\' => self.told.push_str("\\\\"),
                    '"' => self.told.push_str("\\\""),
                    '\n' => self.told.push_str("\\n"),
                    c => self.told.push(c),
                }
            }
            self.told.push('"');
            open = ',';
        }
        if open == ',' {
            self.told.push('}');
        }
        // Writing to a string cannot fail.
        let _ = match number {
            Number::Whole(whole) => writeln!(self.told, " {whole}"),
            Number::Real(real) => writeln!(self.told, " {real}"),
        };
    }

    /// The whole. To a reader of the older format the last line is a comment.
    pub fn end(mut self) -> String {
        self.told.push_str("# EOF\n");
        self.told
    }
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
        }
    }
}
