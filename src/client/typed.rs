//! Header values that a caller gives word for word: sent, and never stored, for they may be credentials.

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::dispatch::prepare::is_for_anybody;
use crate::job::{Columns, NewJob};
use crate::secrets::{Secrets, names_a_credential};
use crate::template::{Place, Secret, Template};

/// What the store has instead.
const NOT_KEPT: &str = "(not kept)";

/// The values, by name.
#[derive(Debug, Default)]
pub(super) struct Typed(Vec<(HeaderName, HeaderValue)>);

impl Typed {
    /// Takes them out of the job. A value with `${env:X}` or its kin stays as it is: that is no secret.
    pub fn take(job: &mut NewJob, secrets: &Secrets) -> Typed {
        let mut typed = Typed::default();
        for (name, kept) in &mut job.request.headers {
            let free = Template::parse(kept).ok().filter(|template| template.secrets().is_empty());
            let Some(template) = free else { continue };
            let name = name.to_ascii_lowercase();
            if is_for_anybody(&name, kept) {
                continue;
            }
            let filled = template.render(&Columns::new(), Place::Header, &|_| None);
            let Ok(text) = filled else { continue };
            let parsed = (HeaderName::try_from(&name).ok(), HeaderValue::try_from(&text).ok());
            let (Some(parsed), Some(mut value)) = parsed else { continue };
            if names_a_credential(&name) {
                // Kept answers are searched for it. Behind `Bearer` and its kin.
                let secret = text.rsplit_once(' ').map_or(text.as_str(), |(_, secret)| secret);
                secrets.remember(secret, &Secret::Named(name));
            }
            value.set_sensitive(true);
            typed.0.push((parsed, value));
            NOT_KEPT.clone_into(kept);
        }
        typed
    }

    /// Puts them where their places are; one that a redirect took away stays away.
    pub fn fill(&self, headers: &mut HeaderMap) {
        for (name, value) in &self.0 {
            if let Some(place) = headers.get_mut(name) {
                place.clone_from(value);
            }
        }
    }
}
