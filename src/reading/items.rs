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
    /// The item's own status, where it has one.
    pub status: Option<u16>,
    /// What that means.
    pub reading: Reading,
    /// The item, as it stands in the answer; null where it is not there.
    pub item: Value,
}

/// Where a reading comes from that is the list's own.
const SOURCE: &str = "batch.answer";

/// What the answer to a call of the partition, read as `whole`, says of each of the jobs, whose columns these
/// are. A job that is not
/// there is one of which nothing is said in particular. Nothing at all is said where the answer has no
/// list, or is a refusal that concerns them all.
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
    let body = serde_json::from_slice::<Value>(answer.body).unwrap_or_default();
    let Some(Value::Array(list)) = body.pointer(&declared.items) else { return Vec::new() };
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
    each.map(|(job, said)| said.unwrap_or_else(|| unsaid(job, answer))).collect()
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
    let status = own.and_then(|own| text(own).trim().parse().ok());
    let body = item.to_string();
    // The headers are the call's own: what they say, they say of the call.
    let part = Answer {
        status: status.unwrap_or(answer.status),
        headers: &[],
        body: body.as_bytes(),
        ..*answer
    };
    let mut reading = read_for(partition, Some(upstream), &part);
    if declared.status.is_none() && reading.reason.is_success() {
        let shown = words::line(&body, words::LONGEST);
        reading = Reading::plain(Reason::InvalidRequest, SOURCE, shown);
    }
    ItemReading { job, status, reading, item: item.clone() }
}

fn unsaid(job: usize, answer: &Answer<'_>) -> ItemReading {
    let detail = "the answer says nothing of this item".to_owned();
    let reading = Reading::plain(Reason::Unknown, SOURCE, detail);
    ItemReading { job, status: Some(answer.status), reading, item: Value::Null }
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

    fn said(status: bool, code: u16, body: &str) -> Vec<(usize, Option<u16>, Reason, String)> {
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
        assert_eq!(said(true, 207, body)[2].1, Some(429));
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
        assert_eq!((told[0].0, told[0].2), (1, Reason::InvalidRequest));
        assert!(told[0].3.contains("no such page"), "{}", told[0].3);
        let typed = r#"{"results": [{"url": "b", "error": {"code": 404, "status": "NOT_FOUND"}}]}"#;
        assert_eq!(short(false, 200, typed), [(1, Reason::NotFound)], "by the usual readers");
    }

    #[test]
    fn where_there_is_no_list_or_all_are_refused_nothing_is_said() {
        for body in ["", "{}", r#"{"results": {}}"#, "<html>", r#"{"results": [1, null]}"#] {
            assert_eq!(short(false, 200, body), [], "{body}");
        }
        let body = r#"{"results": [{"url": "a"}]}"#;
        assert_eq!(short(false, 429, body), [], "the whole call must wait");
        assert_eq!(short(false, 400, body), [(0, Reason::InvalidRequest)]);
    }
}
