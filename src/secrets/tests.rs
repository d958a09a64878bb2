//! Where secrets are found, and that none is shown.

use super::*;
use crate::quota::declare;

fn secrets() -> Secrets {
    Secrets::with_environment(|name| match name {
        "KEY" => Some("s3cr&t \"key\"/é".into()),
        "SHORT" => Some("abc".into()),
        "EMPTY" => Some("".into()),
        _ => None,
    })
}

fn upstream() -> Upstream {
    let text = "[credential.main]\nsecret = { key = \"k-${env:KEY}\", gone = \"${env:GONE}\" }";
    declare::parse("test", "test.toml", text).unwrap()
}

fn env(name: &str) -> Secret {
    Secret::Env(name.to_owned())
}

#[test]
fn what_is_missing_is_named() {
    let (secrets, upstream) = (secrets(), upstream());
    let told = |secret: Secret, credential| {
        secrets.resolve(&secret, &upstream, credential).unwrap_err().to_string()
    };
    let named = |name: &str| Secret::Named(name.to_owned());
    assert_eq!(told(env("GONE"), None), "`${env:GONE}` is not set");
    assert_eq!(told(env("EMPTY"), None), "`${env:EMPTY}` is not set");
    assert_eq!(told(named("gone"), Some("main")), "`${env:GONE}` is not set");
    assert_eq!(
        told(named("key"), None),
        "`${secret:key}` needs a credential, and the job has none"
    );
    let undeclared = "the credential `main` declares no `${secret:kye}`";
    assert_eq!(told(named("kye"), Some("main")), undeclared);
    let file = Secret::File("/nowhere/at/all".to_owned());
    assert_eq!(told(file, None), "`${file:/nowhere/at/all}` cannot be read");
}

#[test]
fn a_file_loses_its_last_line_break_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    let secret = Secret::File(path.to_str().unwrap().to_owned());
    let read = |text: &str| {
        std::fs::write(&path, text).unwrap();
        secrets().resolve(&secret, &upstream(), None)
    };
    assert_eq!(read("key\n").unwrap(), "key");
    assert_eq!(read("key\r\n").unwrap(), "key");
    assert_eq!(read(" key \n\n").unwrap(), " key \n");
    assert!(matches!(read("\n"), Err(SecretError::EmptyFile(_))));
}

#[test]
fn every_form_of_a_value_is_found() {
    let (secrets, upstream) = (secrets(), upstream());
    let value = secrets.resolve(&env("KEY"), &upstream, None).unwrap();
    let redactor = secrets.redactor();
    let found = |text: &str| assert_eq!(redactor.redact(text), "a ${env:KEY} z", "{text}");
    found(&format!("a {value} z"));
    found("a s3cr%26t%20%22key%22%2F%C3%A9 z");
    found("a s3cr%26t%20%22key%22%2f%c3%a9 z");
    found("a s3cr%26t+%22key%22%2F%C3%A9 z");
    found("a s3cr&t \\\"key\\\"/é z");
    found("a s3cr&t \\\"key\\\"\\/é z");
    // As Go and Python write JSON, JSON within JSON, entities, encoded twice, by Python's `quote`.
    found("a s3cr\\u0026t \\\"key\\\"/\\u00e9 z");
    found("a \\u00733cr&t \\\\\\\"key\\\\\\\"/\\\\u00E9 z");
    found("a s3cr&amp;t &quot;key&#34;&#x2F;&#233; z");
    found("a s3cr&amp;amp;t &amp;quot;key&quot;/é z");
    found("a s3cr%2526t%2520%2522key%2522%252F%25C3%25A9 z");
    found("a s3cr%26t%20%22key%22/%C3%A9 z");
    // Every letter encoded, needed or not.
    found("a %73%33%63%72%26%74%20%22%6b%65%79%22%2f%c3%a9 z");
    found("a &#115;&#51;&#99;&#114;&#38;&#116;&#32;&#34;&#107;&#101;&#121;&#34;&#47;&#233; z");
    found("a 733363722674202 26b6579222fc3a9 z".replace("2 2", "22").as_str());
}

#[test]
fn base64_is_found_at_each_alignment() {
    let secrets = Secrets::with_environment(|_| Some("correct horse".into()));
    secrets.resolve(&env("KEY"), &upstream(), None).unwrap();
    let redactor = secrets.redactor();
    // "correct horse", "u:correct horse" and "a:bcorrect horse!" in base64; the first with its lines broken.
    assert!(redactor.redact("Y29ycmVj\r\ndCBob3Jz\nZQ==").starts_with("${env:KEY}"));
    for text in ["Y29ycmVjdCBob3JzZQ==", "dTpjb3JyZWN0IGhvcnNl", "YTpiY29ycmVjdCBob3JzZSE="] {
        assert!(redactor.redact(text).contains("${env:KEY}"), "{text}: {}", redactor.redact(text));
    }
}

#[test]
fn a_credential_is_shown_as_what_it_is_made_of() {
    let (secrets, upstream) = (secrets(), upstream());
    let secret = Secret::Named("key".to_owned());
    let value = secrets.resolve(&secret, &upstream, Some("main")).unwrap();
    let redactor = secrets.redactor();
    assert_eq!(redactor.redact(&value), "${secret:key}");
    assert_eq!(redactor.redact("s3cr&t \"key\"/é"), "${env:KEY}");
}

#[test]
fn short_values_and_other_text_are_left_alone() {
    let secrets = secrets();
    assert_eq!(secrets.redactor().redact("abc"), "abc");
    secrets.resolve(&env("SHORT"), &upstream(), None).unwrap();
    assert_eq!(secrets.redactor().redact("abc"), "abc");
    secrets.resolve(&env("KEY"), &upstream(), None).unwrap();
    assert_eq!(secrets.redactor().redact_bytes(b"\xff\x00"), &b"\xff\x00"[..]);
    assert!(!format!("{secrets:?} {:?}", secrets.redactor()).contains("s3cr"));
}

#[test]
fn the_latest_tokens_are_found_and_old_ones_forgotten() {
    let secrets = secrets();
    let long = |letter: &str| format!("{letter}-token-{}", letter.repeat(3000));
    for letter in ["a", "b", "c"] {
        secrets.remember_token("shop", &long(letter));
    }
    secrets.remember_token("other", "other-token");
    let redactor = secrets.redactor();
    for letter in ["b", "c"] {
        assert_eq!(redactor.redact(&format!("<{}>", long(letter))), "<${token}>");
    }
    assert_eq!(redactor.redact("<other-token>"), "<${token}>");
    assert_eq!(redactor.redact(&long("a")), long("a"), "it expired long ago");
    // Of short ones, which may live for a second, many are kept.
    (0..50).for_each(|n| secrets.remember_token("brief", &format!("brief-token-{n:03}")));
    assert_eq!(secrets.redactor().redact("brief-token-000 brief-token-049"), "${token} ${token}");
}

#[test]
fn a_value_of_auth_is_found_though_it_is_written_out() {
    let (secrets, upstream) = (secrets(), upstream());
    let filled = secrets.fill("id-${env:KEY}", &upstream, None, None).unwrap();
    assert_eq!(filled, "id-s3cr&t \"key\"/é");
    secrets.fill("written-out", &upstream, None, Some("client_secret")).unwrap();
    assert_eq!(secrets.redactor().redact("<written-out>"), "<${secret:client_secret}>");
    let gone = secrets.fill("${env:GONE}", &upstream, None, None).unwrap_err();
    assert_eq!(gone.to_string(), "`${env:GONE}` is not set");
}

/// Letters of no pattern, as of a token: so many, from a seed.
fn token(letters: usize, seed: u64) -> String {
    let mut state = seed;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."
            [(state >> 33) as usize % 65]
    };
    (0..letters).map(|_| char::from(next())).collect()
}

#[test]
fn long_tokens_are_found_whole_however_many_there_are() {
    use base64::Engine as _;
    let secrets = secrets();
    let tokens: Vec<String> = (0..60).map(|seed| token(2_500, seed)).collect();
    tokens.iter().enumerate().for_each(|(n, token)| secrets.remember_token(&n.to_string(), token));
    let redactor = secrets.redactor();
    for token in tokens.iter().step_by(20) {
        let base64 = base64::engine::general_purpose::STANDARD.encode(format!("me:{token}"));
        let hex: String = token.bytes().map(|byte| format!("{byte:02x}")).collect();
        for written in
            [token.clone(), base64, hex, token.replace('.', "%2e").replace('_', "\\u005f")]
        {
            let shown =
                redactor.redact(&format!("{{\"t\": \"{written}\", \"x\": 1}}")).into_owned();
            let rest = shown.replace("${token}", "");
            assert!(rest.len() < 40 && shown.ends_with("\", \"x\": 1}"), "{shown}");
        }
    }
    let cut = &tokens[0][..1_000];
    assert_eq!(redactor.redact(cut), "${token}", "also where its end was lost");
    assert_eq!(redactor.redact(&token(2_500, 77)), token(2_500, 77), "no other");
}

#[test]
fn where_a_file_is_is_told_and_what_it_holds_is_not() {
    let long = "k".repeat(1_600);
    let values = [
        ("PATH_OF", "/etc/keys/sa.json".to_owned()),
        ("TEXT_OF", "{\"private_key\": 1}".to_owned()),
        ("LONG", long),
    ];
    let environment = values.clone().map(|(name, value)| (name, std::ffi::OsString::from(value)));
    let secrets = Secrets::with_environment(move |name| {
        environment.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone())
    });
    for (name, value) in values {
        let filled = secrets.fill_path(&format!("${{env:{name}}}"), &upstream(), None).unwrap();
        assert_eq!(filled, value);
        let told = secrets.redactor().redact(&value).into_owned();
        assert_eq!(told == value, name == "PATH_OF", "{name}: {told}");
    }
    // Elsewhere the same variable may stand for a secret.
    secrets.resolve(&env("PATH_OF"), &upstream(), None).unwrap();
    assert_eq!(secrets.redactor().redact("at /etc/keys/sa.json"), "at ${env:PATH_OF}");
}
