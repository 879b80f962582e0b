//! Sets of tasks of an array, as `1-9:2,20%3`.

use std::fmt;
use std::str::FromStr;

use super::{MAX_TASK, number};

/// Some tasks of an array, in the order in which they were written.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TaskSet {
    ranges: Vec<Range>,
    at_once: Option<u32>,
}

/// `first`, `first + step` and so on, up to `last`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Range {
    first: u32,
    last: u32,
    step: u32,
}

impl TaskSet {
    /// One task alone.
    pub fn one(task: u32) -> Self {
        let range = Range {
            first: task,
            last: task,
            step: 1,
        };
        Self {
            ranges: vec![range],
            at_once: None,
        }
    }

    /// Whether `task` is one of them.
    pub fn contains(&self, task: u32) -> bool {
        let within = |range: &Range| {
            (range.first..=range.last).contains(&task) && (task - range.first).is_multiple_of(range.step)
        };
        self.ranges.iter().any(within)
    }

    /// The task, where it is one alone.
    pub fn single(&self) -> Option<u32> {
        match self.ranges[..] {
            [range] if range.first == range.last => Some(range.first),
            _ => None,
        }
    }

    /// How many may run at once, where the array says so.
    pub fn at_once(&self) -> Option<u32> {
        self.at_once
    }
}

impl FromStr for TaskSet {
    /// What is wrong.
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let (list, at_once) = match text.split_once('%') {
            Some((list, at_once)) => {
                let at_once = number(at_once).filter(|&at_once| at_once > 0);
                (list, Some(at_once.ok_or("what follows % is no number above 0")?))
            }
            None => (text, None),
        };
        let ranges: Option<Vec<_>> = list.split(',').map(range).collect();
        Ok(Self {
            ranges: ranges.ok_or("tasks are a list as 1,3,5-7 or 0-10:2, up to 4000000")?,
            at_once,
        })
    }
}

/// `7`, `5-7` or `0-10:2`.
fn range(text: &str) -> Option<Range> {
    let (ends, step) = match text.split_once(':') {
        Some((ends, step)) => (ends, number(step).filter(|&step| step > 0)?),
        None => (text, 1),
    };
    let (first, last) = match ends.split_once('-') {
        Some((first, last)) => (number(first)?, number(last)?),
        None if step == 1 => (number(ends)?, number(ends)?),
        None => return None,
    };
    let step = if first == last { 1 } else { step };
    (first <= last && last <= MAX_TASK).then_some(Range { first, last, step })
}

impl fmt::Display for TaskSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, range) in self.ranges.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{}", range.first)?;
            if range.first != range.last {
                write!(f, "-{}", range.last)?;
            }
            if range.step != 1 {
                write!(f, ":{}", range.step)?;
            }
        }
        self.at_once.map_or(Ok(()), |at_once| write!(f, "%{at_once}"))
    }
}
