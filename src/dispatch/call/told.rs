//! What came back of a call becomes its settlement: read, searched for secrets, kept as far as is wanted.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;
use url::Url;

use super::Way;
use crate::dispatch::transport::{NoAnswer, Received, Transport};
use crate::quota::KeepBody;
use crate::reading::items::read_items;
use crate::reading::remaining::remaining;
use crate::reading::{Answer, Reading, Reason, read_for};
use crate::redirect::{self, Redirect, Redirected};
use crate::secrets::Redactor;
use crate::store::{Call, ItemEnd, KeptBody, Settlement, Store};

/// Of a body that was cut so much of the end is not kept: half of a secret would not be found in it.
const CUT_EDGE: usize = 16 * 1024;

/// Half of a JSON text is none.
const TOO_LONG: &str = "; the answer is too long to be read to its end, so no fields were taken";

const HTTPS: &str = "https:";

impl<S: Store, T: Transport> Way<S, T> {
    /// A refusal that broke off is one: what its head says counts. Of anything else nothing is known.
    pub fn broken_off(
        &self,
        call: &Call,
        url: Option<&Url>,
        silence_of: &NoAnswer,
        redactor: &Redactor,
    ) -> Settlement {
        let told = silence_of.part.as_deref().map(|part| self.answered(call, url, part, redactor));
        let is_refusal = |told: &Settlement| {
            let reason = told.reading.reason;
            !(reason.is_success() || reason.is_permanent()) && told.redirect.is_none()
        };
        match told.filter(is_refusal) {
            Some(mut told) => {
                let broke = redactor.redact(&silence_of.detail);
                told.reading.detail.push_str(&format!(" (it broke off: {broke})"));
                told
            }
            None => unanswered(call, silence_of, redactor),
        }
    }

    /// What an answer to the call means; `url`: the address that it came from, where redirects are followed.
    pub fn answered(
        &self,
        call: &Call,
        url: Option<&Url>,
        received: &Received,
        redactor: &Redactor,
    ) -> Settlement {
        let answer = Answer {
            method: call.job.method(),
            url: call.job.url(),
            received_at: received.received_at,
            status: received.status,
            headers: &received.headers,
            body: &received.body,
        };
        let read = |answer: &Answer<'_>| read_for(&call.partition, Some(&self.upstream), answer);
        let mut reading = read(&answer);
        // Another host's figures are of another quota.
        let away = call.job.redirect.as_ref().is_some_and(|redirect| redirect.away);
        let told = (!away).then(|| remaining(&self.upstream, &call.partition, &answer));
        let body = redactor.redact_bytes(&received.body);
        if let Cow::Owned(body) = &body {
            // The detail is cut: half of a secret would not be found in it any more.
            let shown = Answer { body, ..answer };
            reading.detail = read(&shown).detail;
        }
        if let Some(connection) = received.connection
            && reading.reason == Reason::RateLimited
        {
            self.transport.refused(connection);
        }
        // Whoever holds a permit follows it, or not.
        let followed = url.filter(|_| !call.once);
        let redirect =
            followed.and_then(|url| follow(call, url, &mut reading, received.status, redactor));
        reading.detail = redactor.redact(&reading.detail).into_owned();
        if received.cut && reading.reason.is_success() && !self.upstream.results.is_empty() {
            reading.detail.push_str(TOO_LONG);
        }
        let items = self.items(call, &answer, &reading, redactor);
        let body = self.kept(&reading, &items, body, received.cut);
        let fields = match self.upstream.results.is_empty() {
            true => BTreeMap::new(),
            false => serde_json::from_slice(&received.body)
                .map_or_else(|_| BTreeMap::new(), |body| self.fields(&body, redactor)),
        };
        let (status, connection) = (Some(received.status), received.connection);
        Settlement {
            status,
            connection,
            items,
            remaining: told.unwrap_or_default(),
            redirect,
            fields,
            body,
            ..Settlement::of(call, reading)
        }
    }

    /// What the answer says of each job of a batch.
    fn items(
        &self,
        call: &Call,
        answer: &Answer<'_>,
        whole: &Reading,
        redactor: &Redactor,
    ) -> Vec<ItemEnd> {
        let jobs: Vec<_> = call.jobs().collect();
        let columns: Vec<_> = jobs.iter().map(|job| &job.columns).collect();
        let said = read_items(&call.partition, &self.upstream, answer, whole, &columns).into_iter();
        said.filter_map(|mut said| {
            said.reading.detail = redactor.redact(&said.reading.detail).into_owned();
            Some(ItemEnd {
                job: jobs.get(said.job)?.id,
                status: Some(said.status),
                fields: self.fields(&said.item, redactor),
                reading: said.reading,
            })
        })
        .collect()
    }

    fn kept(
        &self,
        reading: &Reading,
        items: &[ItemEnd],
        body: Cow<'_, [u8]>,
        cut: bool,
    ) -> Option<KeptBody> {
        let keep = &self.upstream.keep;
        let mut reasons = items.iter().map(|item| item.reading.reason).chain([reading.reason]);
        let wanted = match keep.body {
            KeepBody::All => true,
            KeepBody::Refusals => !reasons.all(Reason::is_success),
            KeepBody::None => false,
        };
        if !wanted {
            return None;
        }
        let whole = if cut { body.len().saturating_sub(CUT_EDGE) } else { body.len() };
        let cut = cut || whole > keep.max_bytes;
        let mut bytes = body.into_owned();
        bytes.truncate(whole.min(keep.max_bytes));
        Some(KeptBody { bytes, cut })
    }

    /// The `[results]` fields that the answer, or an item of it, has.
    fn fields(&self, body: &Value, redactor: &Redactor) -> BTreeMap<String, Value> {
        let taken = |(name, pointer): (&String, &String)| {
            let value = body.pointer(pointer)?.to_string();
            let value = serde_json::from_str(&redactor.redact(&value)).ok()?;
            Some((name.clone(), value))
        };
        self.upstream.results.iter().filter_map(taken).collect()
    }
}

/// What the lack of an answer means.
pub(crate) fn unanswered_told(call: &Call, left: bool, detail: String) -> Settlement {
    Settlement { left, ..Settlement::of(call, silence(Reason::Transient, detail)) }
}

fn unanswered(call: &Call, silence_of: &NoAnswer, redactor: &Redactor) -> Settlement {
    let detail = redactor.redact(&silence_of.detail).into_owned();
    unanswered_told(call, silence_of.left, detail)
}

/// Where an answer that is a redirect sends the job on. The reading then says so, or why not.
fn follow(
    call: &Call,
    url: &Url,
    reading: &mut Reading,
    status: u16,
    redactor: &Redactor,
) -> Option<Redirect> {
    let location = reading.location.as_deref()?;
    let own = call.job.request.url.get(..HTTPS.len());
    let redirected = Redirected {
        status,
        method: call.job.method(),
        url,
        body: call.job.body(),
        repeatable: call.repeatable,
        is_secure: own.is_some_and(|scheme| scheme.eq_ignore_ascii_case(HTTPS)),
        by: call.job.redirect.as_ref(),
    };
    let hide = |text: &str| redactor.redact(text).into_owned();
    let followed = redirect::follow(&redirected, location, &hide);
    let (reason, detail) = match &followed {
        Ok(redirect) => (Reason::Ok, redirect.told()),
        Err(end) => (end.reason(), end.to_string()),
    };
    reading.reason = reason;
    reading.retryable = reason.is_retryable();
    reading.detail = detail;
    followed.ok()
}

/// What the lack of an answer means.
pub(super) fn silence(reason: Reason, detail: String) -> Reading {
    Reading::plain(reason, "no answer", detail)
}
