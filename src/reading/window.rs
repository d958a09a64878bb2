//! How long a window is that a refusal names: an hour or longer is a quota, shorter is a rate.

/// The length of a window, as far as the difference matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Window {
    /// Under an hour.
    Short,
    /// An hour or more, under a day.
    Hour,
    /// A day or more, under a week.
    Day,
    /// A week or more, under a month.
    Week,
    /// A month or more.
    Month,
}

impl Window {
    /// By its length in seconds.
    pub(crate) const fn of_seconds(seconds: u64) -> Window {
        match seconds {
            0..3_600 => Window::Short,
            3_600..86_400 => Window::Hour,
            86_400..604_800 => Window::Day,
            604_800..2_419_200 => Window::Week,
            _ => Window::Month,
        }
    }

    /// The longest window that an identifier names: `ExampleRequestsPerDay`, `1/d/{project}`,
    /// `x-ratelimit-remaining-hour`, `DAILY`.
    pub(crate) fn in_name(name: &str) -> Option<Window> {
        words(name).iter().filter_map(|word| unit(word).or_else(|| adverb(word))).max()
    }

    /// The window that a sentence names: "... per day", "your daily limit", "try again tomorrow".
    /// `None` where it names a short one as well, for then nobody can tell which is meant.
    pub(crate) fn in_sentence(text: &str) -> Option<Window> {
        let words = words(text);
        let after = words.iter().zip(words.iter().skip(1)).filter_map(|(word, next)| {
            let leads = matches!(word.as_str(), "per" | "each" | "every" | "this" | "next");
            leads.then(|| unit(next)).flatten()
        });
        let named = after.chain(words.iter().filter_map(|word| adverb(word)));
        let (mut longest, mut shortest) = (None, None);
        for window in named {
            longest = longest.max(Some(window));
            shortest = Some(shortest.map_or(window, |have: Window| have.min(window)));
        }
        longest.filter(|window| (*window == Window::Short) == (shortest == Some(Window::Short)))
    }

    /// Whether it makes a refusal `quota_exhausted`.
    pub(crate) fn is_quota(self) -> bool {
        self >= Window::Hour
    }
}

/// How a day is written in hours, in names and sentences.
const DAY_IN_HOURS: [&str; 5] = ["24hour", "24 hour", "24-hour", "24_hour", "24h"];

fn unit(word: &str) -> Option<Window> {
    Some(match word {
        "s" | "sec" | "second" | "seconds" | "min" | "minute" | "minutes" => Window::Short,
        "h" | "hour" | "hours" => Window::Hour,
        "d" | "day" | "days" => Window::Day,
        "week" | "weeks" => Window::Week,
        "month" | "months" | "year" => Window::Month,
        _ => return None,
    })
}

fn adverb(word: &str) -> Option<Window> {
    Some(match word {
        "secondly" | "minutely" => Window::Short,
        "hourly" => Window::Hour,
        "daily" | "today" | "tomorrow" => Window::Day,
        "weekly" => Window::Week,
        "monthly" | "yearly" => Window::Month,
        _ => return None,
    })
}

/// Words in lower case, also of `camelCase` and `snake_case`; 24 hours are a day.
fn words(text: &str) -> Vec<String> {
    let text =
        DAY_IN_HOURS.iter().fold(text.to_owned(), |text, hours| text.replace(hours, " day "));
    let mut words = vec![String::new()];
    let mut after_lower = false;
    for letter in text.chars() {
        let starts = letter.is_ascii_uppercase() && after_lower;
        if starts || !letter.is_ascii_alphabetic() {
            words.push(String::new());
        }
        if let (true, Some(word)) = (letter.is_ascii_alphabetic(), words.last_mut()) {
            word.push(letter.to_ascii_lowercase());
        }
        after_lower = letter.is_ascii_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::Window;

    #[test]
    fn lengths() {
        let bounds = [0, 3_599, 3_600, 86_399, 86_400, 604_799, 604_800, 2_419_199, 2_419_200];
        use Window::{Day, Hour, Month, Short, Week};
        let lengths = [Short, Short, Hour, Hour, Day, Day, Week, Week, Month];
        assert_eq!(bounds.map(Window::of_seconds), lengths);
    }

    #[test]
    fn names() {
        let is = |name, window| assert_eq!(Window::in_name(name), window, "{name}");
        is("ExampleRequestsPerDay", Some(Window::Day));
        is("1/d/{project}", Some(Window::Day));
        is("1/min/{project}", Some(Window::Short));
        is("x-ratelimit-remaining-hour", Some(Window::Hour));
        is("DAILY", Some(Window::Day));
        is("minutely", Some(Window::Short));
        is("CallsPerWeek", Some(Window::Week));
        is("weekly_calls", Some(Window::Week));
        is("month-left", Some(Window::Month));
        is("default", None);
    }

    #[test]
    fn sentences() {
        let is = |text, window| assert_eq!(Window::in_sentence(text), window, "{text}");
        is("limit 'Publish requests per day' of service", Some(Window::Day));
        is("You have exceeded your daily url submission quota : 100", Some(Window::Day));
        is("exceeded your per-minute rate limit", Some(Window::Short));
        is("at most 10 per minute and 1000 per day", None);
        is("have a nice day", None);
    }
}
