//! Templates: examples and properties.

use proptest::prelude::*;

use super::*;

fn row(pairs: &[(&str, &str)]) -> Columns {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn freeze(template: &str, place: Place, pairs: &[(&str, &str)]) -> String {
    Template::parse(template).unwrap().freeze(&row(pairs), place).unwrap()
}

#[test]
fn braces_that_are_no_placeholder_stand_for_themselves() {
    let plain = |template: &str| freeze(template, Place::Plain, &[("isbn", "978")]);
    let same = |text: &str| assert_eq!(plain(text), text);
    same("{");
    same("{}");
    same("}} {");
    same("{ isbn }");
    same("$ {");
    same("{\"a\": {\"b\": {\"c\": 1}}}");
    same("{1}");
    assert_eq!(plain("{isbn}{isbn}"), "978978");
    assert_eq!(plain("{\"a\": {\"b\": {isbn}}}"), "{\"a\": {\"b\": 978}}");
    assert_eq!(plain("{{\"a\": {{\"b\": {isbn}}}}}"), "{\"a\": {\"b\": 978}}");
}

#[test]
fn doubled_braces_are_literal_and_stay_so_when_frozen() {
    let frozen = freeze("{{isbn}} {isbn}", Place::Plain, &[("isbn", "978")]);
    let sent = Template::parse(&frozen).unwrap().render(&Columns::new(), Place::Plain, &|_| None);
    assert_eq!(sent.unwrap(), "{isbn} 978");
}

#[test]
fn secrets_stay_as_typed_until_they_are_rendered() {
    let template = Template::parse("{a}${env:KEY}-${file:/run/key}${secret:n}${token}").unwrap();
    let frozen = template.freeze(&row(&[("a", "${env:HOME}")]), Place::Header).unwrap();
    let again = Template::parse(&frozen).unwrap();
    assert_eq!(again.secrets(), template.secrets());
    let sent = again.render(&Columns::new(), Place::Header, &|_| Some("x".to_owned())).unwrap();
    assert_eq!(sent, "${env:HOME}x-xxx");
}

#[test]
fn unknown_secrets_are_errors() {
    for text in ["${isbn}", "${env:}", "${env:X", "${vault:x}", "${", "a ${token:x}"] {
        let error = Template::parse(text).unwrap_err();
        assert!(matches!(error, TemplateError::UnknownSecret(_)), "{text}: {error}");
    }
}

#[test]
fn values_are_encoded_for_their_place() {
    let at = |template: &str, place, value: &str| freeze(template, place, &[("v", value)]);
    assert_eq!(at("/x?v={v}", Place::Url, "a b/&é{v}"), "/x?v=a%20b%2F%26%C3%A9%7Bv%7D");
    assert_eq!(at("{v}", Place::Url, "https://a/{b}?c=d e"), "https://a/%7Bb%7D?c=d e");
    assert_eq!(at("v={v}", Place::Form, "a b+c"), "v=a+b%2Bc");
    assert_eq!(at("<v>{v}</v>", Place::Xml, "a<b & 'c'"), "<v>a&lt;b &amp; &apos;c&apos;</v>");
    let cdata = "<v><![CDATA[{v}]]></v><w>{v}</w>";
    assert_eq!(
        at(cdata, Place::Xml, "a<b]]>"),
        "<v><![CDATA[a<b]]]]><![CDATA[>]]></v><w>a&lt;b]]&gt;</w>"
    );
    let breaks = "<w v=\"{v}\"/><![CDATA[{v}]]>";
    assert_eq!(
        at(breaks, Place::Xml, "\t\r\n"),
        "<w v=\"&#9;&#13;&#10;\"/><![CDATA[\t]]>&#13;<![CDATA[\n]]>"
    );
    assert_eq!(at("{\"v\": \"{v}\"}", Place::Json, "a\"\n\u{1}"), "{\"v\": \"a\\\"\\n\\u0001\"}");
    assert_eq!(at("{\"v\": {v}}", Place::Json, "12.5"), "{\"v\": 12.5}");
    assert_eq!(at("{\"v\": {v}}", Place::Json, "1, \"w\": 2"), "{\"v\": \"1, \\\"w\\\": 2\"}");
    assert_eq!(at("{\"v\": {v}}", Place::Json, "0012"), "{\"v\": \"0012\"}");
}

#[test]
fn a_header_refuses_what_would_end_it() {
    let template = Template::parse("a {v}").unwrap();
    let error = template.freeze(&row(&[("v", "x\r\nCookie: y")]), Place::Header).unwrap_err();
    assert_eq!(error, TemplateError::BreaksHeader("v".to_owned()));
    let template = Template::parse("Bearer ${env:T}").unwrap();
    let sent = template.render(&Columns::new(), Place::Header, &|_| Some("x\n".to_owned()));
    assert_eq!(sent.unwrap_err(), TemplateError::SecretBreaksHeader(Secret::Env("T".to_owned())));
}

#[test]
fn the_place_of_a_body_is_its_content_type() {
    let of = Place::of_body;
    assert_eq!(of(Some("application/json; charset=utf-8"), ""), Place::Json);
    assert_eq!(of(Some("application/problem+JSON"), ""), Place::Json);
    assert_eq!(of(Some("application/soap+xml"), ""), Place::Xml);
    assert_eq!(of(Some("application/x-www-form-urlencoded"), "{"), Place::Form);
    assert_eq!(of(Some("text/plain"), "{\"a\": 1}"), Place::Plain);
    assert_eq!(of(None, " {\"a\": 1}"), Place::Json);
    assert_eq!(of(None, "{{\"a\": 1}}"), Place::Json);
    assert_eq!(of(None, "{payload}"), Place::Plain);
    assert_eq!(of(None, "a=b"), Place::Plain);
}

#[test]
fn a_missing_column_is_named() {
    let error = Template::parse("{isbn}").unwrap().freeze(&Columns::new(), Place::Url);
    assert_eq!(error.unwrap_err(), TemplateError::MissingColumn("isbn".to_owned()));
}

/// Text that is likely to look like a template.
fn hostile() -> impl Strategy<Value = String> {
    prop_oneof![
        "[{}$a:\"\\\\/ ]{0,12}",
        "(\\{|\\}|\\$\\{|env:X|token|isbn|\"|a){0,10}",
        any::<String>()
    ]
}

proptest! {
    #[test]
    fn no_value_becomes_a_placeholder(value in hostile(), other in hostile()) {
        let template = Template::parse("{{x}} ${env:K}{v}{w}$${token}{v}}").unwrap();
        let columns = row(&[("v", &value), ("w", &other)]);
        for place in [Place::Url, Place::Form, Place::Xml, Place::Plain, Place::Json] {
            let frozen = template.freeze(&columns, place).unwrap();
            let again = Template::parse(&frozen).unwrap();
            prop_assert!(again.columns().is_empty(), "{}", frozen);
            prop_assert_eq!(again.secrets(), template.secrets());
            let secret = |_: &Secret| Some("s".to_owned());
            let sent = again.render(&Columns::new(), place, &secret).unwrap();
            prop_assert_eq!(sent, template.render(&columns, place, &secret).unwrap());
        }
    }

    #[test]
    fn json_stays_json_and_keeps_the_value(value in hostile()) {
        let template = Template::parse("{\"a\": {\"v\": \"{v}\", \"k\": \"${env:K}\"}, \"raw\": {v}}");
        let sent = template.unwrap().render(&row(&[("v", &value)]), Place::Json, &|_| Some("\"".into()));
        let json: serde_json::Value = serde_json::from_str(&sent.unwrap()).unwrap();
        prop_assert_eq!(json["a"]["v"].as_str(), Some(value.as_str()));
        prop_assert_eq!(json["a"]["k"].as_str(), Some("\""));
        prop_assert_eq!(json.as_object().unwrap().len(), 2);
    }

    #[test]
    fn a_url_keeps_its_shape(value in hostile()) {
        prop_assume!(!matches!(value.as_str(), "" | "." | ".."));
        let url = freeze("https://a.example/x/{v}/y?q={v}#f", Place::Url, &[("v", &value)]);
        let url = url::Url::parse(&url).unwrap();
        prop_assert_eq!(url.path_segments().unwrap().count(), 3);
        let pairs: Vec<_> = url.query_pairs().collect();
        prop_assert_eq!(pairs.len(), 1);
        prop_assert_eq!(pairs[0].1.as_ref(), value.as_str());
    }
}

fn batch(text: &str, place: Place, values: &[&str]) -> Result<String, TemplateError> {
    let rows: Vec<Columns> = values
        .iter()
        .map(|value| {
            Columns::from([("v".to_owned(), (*value).to_owned()), ("s".to_owned(), "S".to_owned())])
        })
        .collect();
    let items: Vec<&Columns> = rows.iter().collect();
    Template::parse(text)?.render_batch(&rows[0], &items, place, &|_| None)
}

#[test]
fn the_columns_of_a_batch_are_a_list() {
    let json = |text, values: &[&str]| batch(text, Place::Json, values).unwrap();
    assert_eq!(
        json(r#"{"s": "{s}", "l": {items.v}}"#, &["a", "1", "b\"c"]),
        r#"{"s": "S", "l": ["a",1,"b\"c"]}"#
    );
    assert_eq!(json(r#"["{items.v}"]"#, &["9780", "a\nb"]), r#"["9780","a\nb"]"#);
    assert_eq!(json("{items.v}", &["{items.v}"]), r#"["{items.v}"]"#, "a value is no template");
    assert_eq!(batch("id={items.v}", Place::Form, &["a b", "c;d"]).unwrap(), "id=a+b,c%3Bd");
    assert_eq!(
        batch("id={items.v}", Place::Form, &["a", "c,d"]),
        Err(TemplateError::BreaksList("v".to_owned())),
        "decoded it would be two"
    );
    assert_eq!(json("{items.v}", &["c,d"]), r#"["c,d"]"#);
    assert_eq!(batch("{items.v}", Place::Plain, &["a", "b"]).unwrap(), "a\nb");
    assert_eq!(
        batch("{items.v}", Place::Plain, &["a\nc", "b"]),
        Err(TemplateError::BreaksLine("v".to_owned())),
        "it would be two"
    );
}

#[test]
fn a_job_alone_is_a_batch_of_one() {
    let template = Template::parse(r#"{"h": "{h}", "l": {items.url}}"#).unwrap();
    let row = Columns::from([("h".to_owned(), "x".to_owned()), ("url".to_owned(), "u".to_owned())]);
    assert_eq!(template.freeze(&row, Place::Json).unwrap(), r#"{"h": "x", "l": ["u"]}"#);
    assert_eq!(template.columns(), ["h", "url"]);
    assert_eq!(template.shared_columns(), ["h"]);
    assert!(template.is_batch());
    assert!(!Template::parse("{items}").unwrap().is_batch());
}

#[test]
fn xml_has_no_control_characters() {
    let template = Template::parse("<v>{v}</v>").unwrap();
    for (value, fits) in
        [("a\u{1}b", false), ("\u{fffe}", false), ("a\tb\r\n\u{1f4d6}\u{7f}", true)]
    {
        let columns = Columns::from([("v".to_owned(), value.to_owned())]);
        let frozen = template.freeze(&columns, Place::Xml);
        assert_eq!(frozen.is_ok(), fits, "{value:?}: {frozen:?}");
        let bad = Err(TemplateError::BreaksXml("v".to_owned()));
        assert!(fits || frozen == bad, "{frozen:?}");
    }
}
