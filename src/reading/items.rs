//! An answer that speaks of each item of a batch: what it says of which job.

use std::collections::HashMap;

use serde_json::Value;

use super::body::words;
use super::{Answer, Reading, Reason, read_for};
use crate::job::Columns;
use crate::quota::Upstream;
use crate::quota::batch::BatchAnswer;

/// What an answer says of one job of its batch.
#[derive(Clone, Debug)]
pub struct ItemReading {
    /// Which of the jobs.
    pub job: usize,
    /// The item's own status; the call's, where it has none.
    pub status: u16,
    /// What that means.
    pub reading: Reading,
    /// The item, as it stands in the answer; null where it is not there.
    pub item: Value,
}

/// Where a reading comes from that is the list's own.
const SOURCE: &str = "batch.answer";

/// What an item is read as that has no status of its own: what else it says still counts, and that is
/// all there is.
const NO_STATUS: u16 = 0;

/// What the answer to a call of the partition, read as `whole`, says of each of the jobs, whose columns
/// these are. A job that is not there is one of which nothing is said in particular. Nothing at all is
/// said by a refusal that concerns them all, nor by one without a list.
pub fn read_items(
    partition: &Columns,
    upstream: &Upstream,
    answer: &Answer<'_>,
    whole: &Reading,
    jobs: &[&Columns],
) -> Vec<ItemReading> {
    let Some(declared) = upstream.batch.as_ref().and_then(|batch| batch.answer.as_ref()) else {
        return Vec::new();
    };
    if !(whole.reason.is_success() || whole.reason.is_permanent()) {
        return Vec::new();
    }
    let body = serde_json::from_slice::<Value>(answer.body).ok();
    let Some(Value::Array(list)) = body.as_ref().and_then(|body| body.pointer(&declared.items))
    else {
        return match without_list(declared, answer, whole, body.is_some()) {
            Some(why) => (0..jobs.len()).map(|job| unsaid(job, answer, why.clone())).collect(),
            None => Vec::new(),
        };
    };
    let mut said: Vec<Option<ItemReading>> = vec![None; jobs.len()];
    let known = by_key(declared, jobs);
    for item in list {
        let key: Option<Vec<String>> =
            declared.key.keys().map(|at| item.pointer(at).map(text)).collect();
        for job in key.and_then(|key| known.get(&key)).into_iter().flatten() {
            if let Some(said) = said.get_mut(*job) {
                *said = Some(one((partition, upstream), answer, declared, item, *job));
            }
        }
    }
    if declared.status.is_none() {
        return said.into_iter().flatten().collect();
    }
    // A list of all the items: one that is missing was forgotten, and nothing is guessed.
    let each = said.into_iter().enumerate();
    let forgotten = || "the answer says nothing of this item".to_owned();
    each.map(|(job, said)| said.unwrap_or_else(|| unsaid(job, answer, forgotten()))).collect()
}

/// Why nothing is known of the jobs of a success that has no list; `None`: it needs none. One of items
/// refused may be left out, but not be hidden in what is no JSON.
fn without_list(
    declared: &BatchAnswer,
    answer: &Answer<'_>,
    whole: &Reading,
    is_json: bool,
) -> Option<String> {
    if whole.reason != Reason::Ok {
        return None;
    }
    let needed = declared.status.is_some();
    match is_json {
        false if needed || !answer.body.trim_ascii().is_empty() => {
            Some("the answer is no JSON, or was too long to be read whole".to_owned())
        }
        true if needed => Some(format!("the answer has no list at {}", declared.items)),
        _ => None,
    }
}

/// The part of an answer that speaks of the job with these columns: all of it, where answers are not
/// taken apart.
pub fn part_of<'v>(upstream: &Upstream, body: &'v Value, job: &Columns) -> Option<&'v Value> {
    let declared = upstream.batch.as_ref().and_then(|batch| batch.answer.as_ref());
    let list = declared.and_then(|declared| body.pointer(&declared.items)?.as_array());
    let (Some(declared), Some(list)) = (declared, list) else { return Some(body) };
    let agrees = |item: &&Value| {
        let mut key = declared.key.iter();
        key.all(|(at, column)| item.pointer(at).map(text).as_ref() == job.get(column))
    };
    // Of several that speak of it the last, as when the call settled.
    let own = list.iter().rev().find(agrees);
    own.or_else(|| declared.status.is_none().then_some(body))
}

fn by_key(declared: &BatchAnswer, jobs: &[&Columns]) -> HashMap<Vec<String>, Vec<usize>> {
    let mut known: HashMap<Vec<String>, Vec<usize>> = HashMap::with_capacity(jobs.len());
    for (at, columns) in jobs.iter().enumerate() {
        let value = |column: &String| columns.get(column).cloned();
        if let Some(key) = declared.key.values().map(value).collect::<Option<_>>() {
            known.entry(key).or_default().push(at);
        }
    }
    known
}

/// A text as it is, any other value as JSON.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn one(
    (partition, upstream): (&Columns, &Upstream),
    answer: &Answer<'_>,
    declared: &BatchAnswer,
    item: &Value,
    job: usize,
) -> ItemReading {
    let own = declared.status.as_ref().and_then(|at| item.pointer(at));
    let status: Option<u16> = own.and_then(|own| text(own).trim().parse().ok());
    let body = item.to_string();
    let read = |status| {
        // The headers are the call's own: what they say, they say of the call.
        let part = Answer { status, headers: &[], body: body.as_bytes(), ..*answer };
        read_for(partition, Some(upstream), &part)
    };
    let shown = || words::line(&body, words::LONGEST);
    let (status, reading) = match (status, &declared.status) {
        (Some(own), _) => (own, read(own)),
        (None, Some(_)) => {
            // Without a status, and, where the call succeeded, whatever is an error even so.
            let alone = Some(read(NO_STATUS)).filter(|alone| alone.reason != Reason::Unknown);
            let error = || {
                let read = Some(answer.status).filter(|status| *status < 300).map(read);
                read.filter(|reading| !reading.reason.is_success())
            };
            let detail = || format!("the item has no status that is a number: {}", shown());
            let unknown = || Reading::plain(Reason::Unknown, SOURCE, detail());
            (answer.status, alone.or_else(error).unwrap_or_else(unknown))
        }
        (None, None) => match read(answer.status) {
            reading if !reading.reason.is_success() => (answer.status, reading),
            _ => (answer.status, Reading::plain(Reason::InvalidRequest, SOURCE, shown())),
        },
    };
    ItemReading { job, status, reading, item: item.clone() }
}

fn unsaid(job: usize, answer: &Answer<'_>, detail: String) -> ItemReading {
    let reading = Reading::plain(Reason::Unknown, SOURCE, detail);
    ItemReading { job, status: answer.status, reading, item: Value::Null }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;
    use crate::quota::declare;

    const FILE: &str = r#"
name = "up"
[request]
method = "POST"
url = "https://api.example/batch"
[batch]
max_items = 9
body = '{"l": {items.url}}'
[batch.answer]
items = "/results"
key = { "/url" = "url" }
"#;

    fn said(status: bool, code: u16, body: &str) -> Vec<(usize, u16, Reason, String)> {
        let more = if status { "status = \"/code\"\n" } else { "" };
        let upstream = declare::parse("up", "up.toml", &format!("{FILE}{more}")).unwrap();
        let answer = Answer {
            method: "POST",
            url: "https://api.example/batch",
            received_at: Timestamp::from_secs(1_772_366_400),
            status: code,
            headers: &[],
            body: body.as_bytes(),
        };
        let rows: Vec<Columns> =
            ["a", "b", "7"].map(|url| Columns::from([("url".to_owned(), url.to_owned())])).into();
        let jobs: Vec<&Columns> = rows.iter().collect();
        let none = Columns::new();
        let whole = read_for(&none, Some(&upstream), &answer);
        let items = read_items(&none, &upstream, &answer, &whole, &jobs).into_iter();
        items
            .map(|item| (item.job, item.status, item.reading.reason, item.reading.detail))
            .collect()
    }

    fn short(status: bool, code: u16, body: &str) -> Vec<(usize, Reason)> {
        said(status, code, body).into_iter().map(|(job, _, reason, _)| (job, reason)).collect()
    }

    #[test]
    fn with_a_status_each_item_speaks_for_itself() {
        let body = r#"{"results": [{"url": 7, "code": "429"}, {"url": "a", "code": 204}, {"url": "x", "code": 500}]}"#;
        let each = [(0, Reason::Ok), (1, Reason::Unknown), (2, Reason::RateLimited)];
        assert_eq!(short(true, 207, body), each, "of b nothing is said");
        assert_eq!(said(true, 207, body)[2].1, 429);
    }

    #[test]
    fn a_part_is_found_by_its_key() {
        let body = serde_json::json!({"n": 1, "results": [{"url": 7}, {"url": "a", "code": 204}]});
        let part = |more: &str, url: &str| {
            let upstream = declare::parse("up", "up.toml", &format!("{FILE}{more}")).unwrap();
            let job = Columns::from([("url".to_owned(), url.to_owned())]);
            part_of(&upstream, &body, &job).map(Value::to_string)
        };
        let status = "status = \"/code\"\n";
        assert_eq!(part(status, "a").unwrap(), r#"{"code":204,"url":"a"}"#);
        assert_eq!(part(status, "7").unwrap(), r#"{"url":7}"#);
        assert_eq!(part(status, "b"), None, "of it nothing is said");
        assert_eq!(part("", "b"), Some(body.to_string()), "it is none of those refused");
    }

    #[test]
    fn without_one_the_list_is_of_those_refused() {
        let body = r#"{"results": [{"url": "b", "why": "no such page"}]}"#;
        let told = said(false, 200, body);
        assert_eq!(told.len(), 1);
        assert_eq!((told[0].0, told[0].1, told[0].2), (1, 200, Reason::InvalidRequest));
        assert!(told[0].3.contains("no such page"), "{}", told[0].3);
        let typed = r#"{"results": [{"url": "b", "error": {"code": 404, "status": "NOT_FOUND"}}]}"#;
        assert_eq!(short(false, 200, typed), [(1, Reason::NotFound)], "by the usual readers");
    }

    #[test]
    fn where_there_is_no_list_or_all_are_refused_nothing_is_said() {
        for body in ["", "{}", r#"{"results": {}}"#, r#"{"results": [1, null]}"#] {
            assert_eq!(short(false, 200, body), [], "{body}");
        }
        assert_eq!(short(true, 202, ""), [], "it is to come");
        assert_eq!(short(true, 400, "{}"), [], "all of them, or one");
        let body = r#"{"results": [{"url": "a"}]}"#;
        assert_eq!(short(false, 429, body), [], "the whole call must wait");
        assert_eq!(short(false, 400, body), [(0, Reason::InvalidRequest)]);
    }

    #[test]
    fn nothing_is_guessed_of_items_that_a_success_does_not_list() {
        let all = [(0, Reason::Unknown), (1, Reason::Unknown), (2, Reason::Unknown)];
        for body in ["", "{}", r#"{"results": null}"#, r#"{"nothing": 1}"#, "<html>"] {
            assert_eq!(short(true, 207, body), all, "{body}");
            assert_eq!(said(true, 207, body)[0].1, 207);
        }
        assert!(said(true, 200, "{}")[0].3.contains("no list at /results"));
        assert_eq!(short(false, 200, "<html>"), all, "who was refused cannot be seen");
        assert!(said(false, 200, r#"{"results": [{"u"#)[0].3.contains("no JSON"), "it was cut");
    }

    #[test]
    fn an_item_without_a_status_that_is_a_number_is_unknown() {
        for code in ["\"422 Bad\"", "\"error\"", "true", "null", "{}", "-1", "2.5"] {
            let body = format!(r#"{{"results": [{{"url": "a", "code": {code}}}]}}"#);
            let told = said(true, 200, &body);
            assert_eq!((told[0].1, told[0].2), (200, Reason::Unknown), "{code}");
            assert!(told[0].3.contains("no status that is a number"), "{}", told[0].3);
        }
        let none = said(true, 207, r#"{"results": [{"url": "a"}]}"#);
        assert_eq!((none[0].1, none[0].2), (207, Reason::Unknown));
        // What else it says still counts.
        let typed = r#"{"results": [{"url": "a", "error": {"code": 404, "status": "NOT_FOUND"}}]}"#;
        assert_eq!(short(true, 200, typed)[0], (0, Reason::NotFound));
        let rule = "status = \"/code\"\n[[reading]]\nwhen = { json = { \"/code\" = \"done\" } }\nreason = \"ok\"\n";
        let upstream = declare::parse("up", "up.toml", &format!("{FILE}{rule}")).unwrap();
        let item = serde_json::json!({"url": "a", "code": "done"});
        let declared = upstream.batch.as_ref().and_then(|batch| batch.answer.as_ref()).unwrap();
        let answer = Answer {
            method: "POST",
            url: "https://api.example/batch",
            received_at: Timestamp::EPOCH,
            status: 200,
            headers: &[],
            body: b"",
        };
        let read = one((&Columns::new(), &upstream), &answer, declared, &item, 0);
        assert_eq!(read.reading.reason, Reason::Ok, "a rule reads words");
    }
}
