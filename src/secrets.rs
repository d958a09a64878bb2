//! Secrets: where their values come from, and how they are kept out of what is stored and shown.
//!
//! A value is asked for when a call is sent and never before, so that a variable or file that changes
//! is taken up by the next call. Every value that was ever given out is remembered in memory, so that
//! a redactor finds it in bodies and messages later on.

mod environment;
mod redact;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::quota::Upstream;
use crate::template::{Place, Secret, Template, TemplateError};
pub use environment::{EnvFileError, lacking, parse_env, provide, variable};
pub(crate) use redact::Redactor;

/// What a header's name holds where its value is a credential.
const CREDENTIALS: [&str; 7] = ["auth", "cookie", "key", "password", "secret", "session", "token"];

/// Whether the value of a header of this name is a credential, as far as its name tells.
pub fn names_a_credential(header: &str) -> bool {
    let header = header.to_ascii_lowercase();
    CREDENTIALS.iter().any(|part| header.contains(part))
}

/// Why a secret has no value.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SecretError {
    /// The environment variable is not set, or empty.
    #[error("`{0}` is not set")]
    NotSet(Secret),
    /// The variable's value or the file's content is no UTF-8 text.
    #[error("`{0}` is not text")]
    NotText(Secret),
    /// A header cannot carry the value.
    #[error("`{0}` holds a line break or another control character, which no header can carry")]
    Unprintable(Secret),
    /// The file cannot be read.
    #[error("`{secret}` cannot be read")]
    Unreadable {
        /// The placeholder.
        secret: Secret,
        /// Why.
        source: io::Error,
    },
    /// The file holds nothing.
    #[error("the file of `{0}` is empty")]
    EmptyFile(Secret),
    /// `${secret:N}` of a job without a credential.
    #[error("`{0}` needs a credential, and the job has none")]
    NoCredential(Secret),
    /// `${secret:N}` that the job's credential does not declare.
    #[error("the credential `{credential}` declares no `{secret}`")]
    Undeclared {
        /// The placeholder.
        secret: Secret,
        /// The job's credential.
        credential: String,
    },
    /// `${token}` where no `[auth]` gives one.
    #[error("`${{token}}` needs [auth], and the quota file has none")]
    NoToken,
    /// The credential's own template is broken.
    #[error("the template of `{secret}` cannot be filled")]
    Template {
        /// The placeholder.
        secret: Secret,
        /// Why.
        source: TemplateError,
    },
}

/// Of each owner's tokens so many are searched for, however long they are.
const FEWEST_TOKENS: usize = 2;

/// And more of them up to so many bytes in all: short tokens may live for a second only, while a late
/// answer repeats an old one.
const TOKEN_BYTES: usize = 4096;

/// Looks a variable up: the process environment, or a stand-in for it.
type Environment = Box<dyn Fn(&str) -> Option<std::ffi::OsString> + Send + Sync>;

/// Resolves secrets, and remembers what it gave out.
pub struct Secrets {
    environment: Environment,
    given: Mutex<Given>,
}

/// What was given out.
#[derive(Default)]
struct Given {
    /// Each value, and what it stands in for; a changed value does not replace the one before.
    values: BTreeMap<String, Secret>,
    /// The latest tokens of each owner, which are among the values too. Older ones have expired.
    tokens: BTreeMap<String, VecDeque<String>>,
    /// Finds all of them; made when it is asked for.
    redactor: Option<Arc<Redactor>>,
}

impl Given {
    fn remember(&mut self, value: &str, secret: &Secret) {
        if !self.values.contains_key(value) {
            self.values.insert(value.to_owned(), secret.clone());
            self.redactor = None;
        }
    }

    fn remember_token(&mut self, owner: &str, value: &str) {
        self.remember(value, &Secret::Token);
        let tokens = self.tokens.entry(owner.to_owned()).or_default();
        tokens.push_back(value.to_owned());
        while tokens.len() > FEWEST_TOKENS
            && tokens.iter().map(String::len).sum::<usize>() > TOKEN_BYTES
        {
            let Some(oldest) = tokens.pop_front() else { return };
            self.values.remove(&oldest);
            self.redactor = None;
        }
    }
}

impl std::fmt::Debug for Secrets {
    /// Without any value.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secrets").finish_non_exhaustive()
    }
}

impl Default for Secrets {
    fn default() -> Self {
        Secrets::new()
    }
}

impl Secrets {
    /// From this process's environment, what was provided beside it, and files.
    pub fn new() -> Secrets {
        Secrets::with_environment(variable)
    }

    /// From another environment.
    pub(crate) fn with_environment(
        environment: impl Fn(&str) -> Option<std::ffi::OsString> + Send + Sync + 'static,
    ) -> Secrets {
        Secrets { environment: Box::new(environment), given: Mutex::default() }
    }

    /// The value of `secret` for a job of `upstream` and that `credential`.
    ///
    /// # Errors
    ///
    /// What is missing, named by its placeholder: for `${secret:N}` the variable or file behind it.
    pub fn resolve(
        &self,
        secret: &Secret,
        upstream: &Upstream,
        credential: Option<&str>,
    ) -> Result<String, SecretError> {
        let mut found = Vec::new();
        let value = self.look_up(secret, upstream, credential, &mut found)?;
        self.remember_all(found);
        Ok(value)
    }

    /// As [`Secrets::resolve`], for a header.
    ///
    /// # Errors
    ///
    /// As there; and where the value holds a control character, as after a copied line end.
    pub(crate) fn resolve_for_header(
        &self,
        secret: &Secret,
        upstream: &Upstream,
        credential: Option<&str>,
    ) -> Result<String, SecretError> {
        printable(secret, self.resolve(secret, upstream, credential)?)
    }

    /// Why a secret of all calls of `upstream` has no value, if it has none. Nothing is given out, and
    /// so nothing is remembered.
    pub fn missing(
        &self,
        secret: &Secret,
        upstream: &Upstream,
        for_header: bool,
    ) -> Option<SecretError> {
        let value = self.look_up(secret, upstream, None, &mut Vec::new());
        let value =
            if for_header { value.and_then(|value| printable(secret, value)) } else { value };
        value.err()
    }

    /// A template of secrets of `[auth]`, filled in. As a whole it is remembered as `name`, where that is
    /// given: it may be written out in the file.
    ///
    /// # Errors
    ///
    /// What is missing, named by its placeholder.
    pub fn fill(
        &self,
        text: &str,
        upstream: &Upstream,
        credential: Option<&str>,
        name: Option<&str>,
    ) -> Result<String, SecretError> {
        let mut found = Vec::new();
        let filled = self.filled(text, upstream, credential, &mut found)?;
        let whole = name.map(|name| (filled.clone(), Secret::Named(name.to_owned())));
        self.remember_all(found.into_iter().chain(whole));
        Ok(filled)
    }

    /// A template of `[auth]` that names a file. Where the file is, is no secret, and is told. What a
    /// variable holds instead of a path may well be one.
    ///
    /// # Errors
    ///
    /// What is missing, named by its placeholder.
    pub(crate) fn fill_path(
        &self,
        text: &str,
        upstream: &Upstream,
        credential: Option<&str>,
    ) -> Result<String, SecretError> {
        let mut found = Vec::new();
        let filled = self.filled(text, upstream, credential, &mut found)?;
        if !is_path(&filled) {
            self.remember_all(found);
        }
        Ok(filled)
    }

    /// A file that holds a secret, as text; `~/` is the home folder.
    ///
    /// # Errors
    ///
    /// It cannot be read, is empty or no text.
    pub fn read(&self, path: &str) -> Result<String, SecretError> {
        self.file(&Secret::File(path.to_owned()), path)
    }

    /// Searches for a value that came from elsewhere too: the key within a file.
    pub(crate) fn remember(&self, value: &str, placeholder: &Secret) {
        self.given().remember(value, placeholder);
    }

    /// Searches for a token of `owner` too, and no longer for those that expired long ago.
    pub(crate) fn remember_token(&self, owner: &str, value: &str) {
        self.given().remember_token(owner, value);
    }

    /// Finds all values that were given out so far.
    pub(crate) fn redactor(&self) -> Arc<Redactor> {
        let mut given = self.given();
        if let Some(redactor) = &given.redactor {
            return Arc::clone(redactor);
        }
        let values = given.values.iter().map(|(value, secret)| (value.as_str(), secret));
        let redactor = Arc::new(Redactor::new(values));
        given.redactor = Some(Arc::clone(&redactor));
        redactor
    }

    fn remember_all(&self, found: impl IntoIterator<Item = (String, Secret)>) {
        let mut given = self.given();
        found.into_iter().for_each(|(value, secret)| given.remember(&value, &secret));
    }

    /// The secret's value, which is added to `found`, as is what it is made of.
    fn look_up(
        &self,
        secret: &Secret,
        upstream: &Upstream,
        credential: Option<&str>,
        found: &mut Vec<(String, Secret)>,
    ) -> Result<String, SecretError> {
        let value = match secret {
            Secret::Env(_) | Secret::File(_) => self.outside(secret)?,
            Secret::Named(name) => self.named(secret, name, upstream, credential, found)?,
            Secret::Token => return Err(SecretError::NoToken),
        };
        found.push((value.clone(), secret.clone()));
        Ok(value)
    }

    /// A template of `[auth]`; the secrets in it are added to `found`.
    fn filled(
        &self,
        text: &str,
        upstream: &Upstream,
        credential: Option<&str>,
        found: &mut Vec<(String, Secret)>,
    ) -> Result<String, SecretError> {
        let broken = |source| SecretError::Template { secret: Secret::Token, source };
        let template = Template::parse(text).map_err(broken)?;
        let mut values = BTreeMap::new();
        for secret in template.secrets() {
            values.insert(secret, self.look_up(secret, upstream, credential, found)?);
        }
        let value = |secret: &Secret| values.get(secret).cloned();
        template.render(&BTreeMap::new(), Place::Plain, &value).map_err(broken)
    }

    /// From the environment or a file.
    fn outside(&self, secret: &Secret) -> Result<String, SecretError> {
        match secret {
            Secret::Env(name) => {
                let value = (self.environment)(name).filter(|value| !value.is_empty());
                let value = value.ok_or_else(|| SecretError::NotSet(secret.clone()))?;
                value.into_string().map_err(|_| SecretError::NotText(secret.clone()))
            }
            Secret::File(path) => self.file(secret, path),
            Secret::Named(_) | Secret::Token => Err(SecretError::NoCredential(secret.clone())),
        }
    }

    /// A file's text without one line break at its end. `~/` is the home folder; other relative paths
    /// start where the program was started.
    fn file(&self, secret: &Secret, path: &str) -> Result<String, SecretError> {
        let home = path.strip_prefix("~/").zip((self.environment)("HOME"));
        let path = match home {
            Some((rest, home)) => PathBuf::from(home).join(rest),
            None => PathBuf::from(path),
        };
        let unreadable = |source| SecretError::Unreadable { secret: secret.clone(), source };
        let bytes = std::fs::read(path).map_err(unreadable)?;
        let not_text = |_| SecretError::NotText(secret.clone());
        let mut text = String::from_utf8(bytes).map_err(not_text)?;
        if text.ends_with('\n') {
            text.pop();
            if text.ends_with('\r') {
                text.pop();
            }
        }
        if text.is_empty() { Err(SecretError::EmptyFile(secret.clone())) } else { Ok(text) }
    }

    /// Of the job's credential; what its template names is added to `found`.
    fn named(
        &self,
        secret: &Secret,
        name: &str,
        upstream: &Upstream,
        credential: Option<&str>,
        found: &mut Vec<(String, Secret)>,
    ) -> Result<String, SecretError> {
        let credential = credential.ok_or_else(|| SecretError::NoCredential(secret.clone()))?;
        let declared = upstream.credentials.get(credential).and_then(|one| one.secret.get(name));
        let undeclared = || SecretError::Undeclared {
            secret: secret.clone(),
            credential: credential.to_owned(),
        };
        let text = declared.ok_or_else(undeclared)?;
        let broken = |source| SecretError::Template { secret: secret.clone(), source };
        let template = Template::parse(text).map_err(broken)?;
        let mut values = BTreeMap::new();
        for inner in template.secrets() {
            let value = self.outside(inner)?;
            found.push((value.clone(), inner.clone()));
            values.insert(inner, value);
        }
        let value = |inner: &Secret| values.get(inner).cloned();
        template.render(&BTreeMap::new(), Place::Plain, &value).map_err(broken)
    }

    fn given(&self) -> MutexGuard<'_, Given> {
        // What was remembered is whole after any panic.
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A value that a header can carry.
fn printable(secret: &Secret, value: String) -> Result<String, SecretError> {
    match value.chars().any(char::is_control) {
        true => Err(SecretError::Unprintable(secret.clone())),
        false => Ok(value),
    }
}

/// Whether a text is the path of a file, and not what such a file holds: a key is longer.
pub(crate) fn is_path(text: &str) -> bool {
    const LONGEST: usize = 1024;
    text.len() <= LONGEST && !text.trim_start().starts_with('{') && !text.contains(char::is_control)
}

#[cfg(test)]
mod tests;
