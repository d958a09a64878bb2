//! Quota files found, preferred, extended and told apart.

use std::fs;

use tempfile::TempDir;

use super::*;
use crate::quota::LimitRule;

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

fn library(folders: &[&TempDir]) -> Library {
    Library::new(folders.iter().map(|folder| folder.path().to_owned()).collect())
}

const PLAIN: &str = "name = \"a\"\ntitle = \"first\"\n[match]\nhosts = [\"*.example\"]\n";

#[test]
fn the_first_folder_wins_and_presets_come_last() {
    let first = folder(&[("a.toml", PLAIN), ("no quota.toml", ""), ("x.txt", "")]);
    let second = folder(&[("a.toml", "title = \"second\""), ("b.toml", "")]);
    let library = library(&[&first, &second]);
    assert_eq!(library.get("a").unwrap().title, "first");
    assert_eq!(library.get("b").unwrap().name, "b");
    let (built_in, own): (Vec<_>, Vec<_>) =
        library.list().into_iter().partition(|entry| entry.built_in);
    let own: Vec<_> = own.into_iter().map(|entry| entry.name).collect();
    assert_eq!(own, ["a", "b"]);
    assert_eq!(built_in.len(), presets::PRESETS.len());
    assert!(library.names().contains("indexnow"));
}

#[test]
fn an_unknown_name_is_told_with_what_was_meant() {
    let library = library(&[]);
    let error = library.get("index-now").unwrap_err().to_string();
    assert_eq!(
        error,
        "there is no upstream `index-now` (did you mean `indexnow`?); looked in the built-in presets; \
         `paceline quotas list` shows all there are, `paceline init index-now` writes a file for it"
    );
    for name in ["../a", "", ".hidden", "a/b"] {
        assert!(matches!(library.get(name), Err(LibraryError::Unknown { .. })), "{name}");
    }
}

#[test]
fn a_file_extends_the_preset_of_its_own_name() {
    let own = "name = \"indexnow\"\nextends = \"indexnow\"\n[[limit]]\nname = \"pace\"\nburst = 1\n\
        rate = \"1/5s\"\n[[reading]]\nwhen = { status = 202 }\nreason = \"ok\"\n";
    let folder = folder(&[("indexnow.toml", own)]);
    let library = library(&[&folder]);
    let upstream = library.get("indexnow").unwrap();
    let LimitRule::Rate(rate) = &upstream.limits[0].rule else { panic!() };
    assert_eq!((rate.amount, rate.period.as_secs()), (1, 5));
    assert_eq!(upstream.limits[0].key, ["host"]);
    assert_eq!(upstream.readings[0].reason, crate::reading::Reason::Ok);
    assert!(upstream.readings.len() > 5 && upstream.body().is_some());
    let lines = library.lines("indexnow").unwrap();
    let line = |text: &str| lines.iter().find(|line| line.text == text).unwrap();
    assert!(line("rate = \"1/5s\"").file.ends_with("indexnow.toml"));
    assert_eq!(line("rate = \"1/5s\"").line, 6);
    assert_eq!(line("key = [\"host\"]").file, "built-in indexnow.toml");
    let text: Vec<_> = lines.iter().map(|line| line.text.as_str()).collect();
    let merged = declare::parse("indexnow", "merged", &text.join("\n"));
    assert_eq!(merged.unwrap().readings.len(), upstream.readings.len());
}

#[test]
fn extends_names_files_and_drops_what_is_removed() {
    let base = "[[limit]]\nname = \"x\"\nkind = \"concurrency\"\namount = 1\n\
        [[limit]]\nname = \"y\"\nkind = \"concurrency\"\namount = 1\n[keep]\ndone = \"1d\"\n";
    let own = "extends = \"base.toml\"\n[[limit]]\nname = \"x\"\nremove = true\n\
        [[limit]]\nname = \"y\"\nkind = \"rate\"\nrate = \"1/s\"\n[keep]\nremove = true\n";
    let folder = folder(&[("base.toml", base), ("a.toml", own)]);
    let upstream = library(&[&folder]).get("a").unwrap();
    let names: Vec<_> = upstream.limits.iter().map(|limit| limit.name.as_str()).collect();
    assert_eq!(names, ["y"]);
    assert_eq!(upstream.limits[0].rule.kind(), "rate");
    assert_eq!(upstream.keep, crate::quota::Keep::default());
}

#[test]
fn problems_of_extends_have_their_place() {
    let files = [
        ("a.toml", "name = \"a\"\nextends = \"b\""),
        ("b.toml", "extends = \"a\""),
        ("c.toml", "extends = \"indexnov\""),
        ("d.toml", "extends = \"wrong\"\n[[limit]]\nname = \"gone\"\nremove = true"),
        ("wrong.toml", "\n[keep]\nbodi = \"all\""),
    ];
    let folder = folder(&files);
    let library = library(&[&folder]);
    let told = |name: &str| {
        let told = library.get(name).unwrap_err().to_string();
        told.replace(&format!("{}/", folder.path().display()), "")
    };
    assert_eq!(
        told("a"),
        "b.toml:1:11: `a.toml` extends itself by way of `a`; extend another file"
    );
    assert_eq!(told("c"), "c.toml:1:11: cannot extend `indexnov`; did you mean \"indexnow\"?");
    let fix = "did you mean `body`? there are body, max_bytes, done, failed";
    let d = told("d");
    assert!(d.contains(&format!("wrong.toml:3:1: unknown field `bodi` in [keep]; {fix}")), "{d}");
}

#[test]
fn a_change_is_noticed_and_a_wrong_one_is_told_once() {
    let folder = folder(&[("a.toml", PLAIN)]);
    let library = library(&[&folder]);
    let write = |text: &str| fs::write(folder.path().join("a.toml"), text).unwrap();
    assert_eq!(library.reload("a").unwrap().unwrap().title, "first");
    assert!(library.reload("a").unwrap().is_none());
    write("title = \"another\"");
    assert_eq!(library.reload("a").unwrap().unwrap().title, "another");
    write("titel = \"wrong\"");
    assert!(matches!(library.reload("a"), Err(LibraryError::Invalid(_))));
    assert!(library.reload("a").unwrap().is_none());
    assert_eq!(library.get("a").unwrap().title, "another");
    write("title = \"right again\"");
    assert_eq!(library.reload("a").unwrap().unwrap().title, "right again");
}

#[test]
fn a_file_that_comes_to_stand_before_another_is_noticed() {
    let (first, second) = (folder(&[]), folder(&[("a.toml", PLAIN)]));
    let library = library(&[&first, &second]);
    assert_eq!(library.get("a").unwrap().title, "first");
    fs::write(first.path().join("a.toml"), "title = \"nearer\"").unwrap();
    assert_eq!(library.reload("a").unwrap().unwrap().title, "nearer");
}

#[test]
fn calls_are_matched_by_their_url() {
    let b = "[match]\nhosts = [\"api.example\"]\npaths = [\"/v1/*\"]\n";
    let folder = folder(&[("a.toml", PLAIN), ("b.toml", b), ("broken.toml", "x")]);
    let library = library(&[&folder]);
    let name = |url: &str| library.match_url(url).map(|upstream| upstream.name.clone());
    assert_eq!(name("https://api.example/v1/x").as_deref(), Some("b"));
    assert_eq!(name("https://api.example/v2/x").as_deref(), Some("a"));
    assert_eq!(name("https://API.indexnow.org/indexnow?x").as_deref(), Some("indexnow"));
    assert_eq!(name("https://nowhere.test/"), None);
    assert_eq!(name("no url"), None);
}

#[test]
fn a_body_of_ones_own_stands_for_inherited_batches() {
    let folder = tempfile::tempdir().unwrap();
    let read = |text: &str| {
        fs::write(folder.path().join("mine.toml"), text).unwrap();
        Library::new(vec![folder.path().to_owned()]).get("mine").unwrap()
    };
    let inherited = read("extends = \"indexnow\"\n[request]\ntimeout = \"5s\"\n");
    assert!(inherited.batch.is_some());
    let own = read("extends = \"indexnow\"\n[request]\nbody = '{\"one\": \"{url}\"}'\n");
    assert_eq!(
        (own.batch.is_some(), own.body().unwrap().as_str()),
        (false, "{\"one\": \"{url}\"}")
    );
    let both = read(
        "extends = \"indexnow\"\n[request]\nbody = '{\"one\": \"{url}\"}'\n[batch]\nmax_items = 3\n",
    );
    assert_eq!(both.batch.as_ref().unwrap().max_items, 3);
}

#[test]
fn only_rules_and_limits_are_merged_with_what_is_inherited() {
    let base = "[match]\nhosts = [\"a.example\"]\n[auth]\nkind = \"command\"\ncommand = [\"a\"]\n\
        [[limit]]\nname = \"x\"\nkind = \"concurrency\"\namount = 1\n";
    let google = "[auth]\nkind = \"google-service-account\"\nkey_file = \"k\"\nscopes = [\"s\"]\n";
    let folder = folder(&[
        ("base.toml", base),
        ("a.toml", &format!("extends = \"base.toml\"\n[match]\nhosts = [\"b.example\"]\n{google}")),
        ("b.toml", "extends = \"base.toml\"\n[auth]\nkind = \"command\"\ncommand = [\"b\"]\n"),
        ("c.toml", "extends = \"base.toml\"\n[[limit]]\nname = \"y\"\nremove = true\n"),
        ("d.toml", "extends = \"base.toml\"\n[[limit]]\nkind = \"concurrency\"\namount = 2\n"),
    ]);
    let library = library(&[&folder]);
    let a = library.get("a").unwrap();
    assert_eq!(a.matches.hosts, ["b.example"], "other lists take the place of the inherited");
    let kind =
        |name: &str| library.get(name).unwrap().auth.as_ref().map(crate::quota::auth::Auth::kind);
    assert_eq!(kind("a"), Some("google-service-account"), "nothing is inherited from another kind");
    let command = library.get("b").unwrap().auth.clone();
    assert_eq!(command, Some(crate::quota::auth::Auth::Command(vec!["b".to_owned()])));
    let told = |name: &str| library.get(name).unwrap_err().to_string();
    assert!(told("c").contains("there is no limit `y` to remove"), "{}", told("c"));
    assert!(told("d").contains("`name`"), "{}", told("d"));
}

#[test]
fn what_is_not_said_again_is_inherited() {
    let google = "[auth]\nkind = \"google-service-account\"\nkey_file = \"k\"\nscopes = [\"s\"]\n";
    let own = "extends = \"base.toml\"\n[auth]\nkind = \"google-service-account\"\nscopes = [\"t\"]\n\
        [[limit]]\nname = \"z\"\nkind = \"concurrency\"\namount = 1\n";
    let google =
        google.to_owned() + "[[limit]]\nname = \"y\"\nkind = \"concurrency\"\namount = 1\n";
    let folder = folder(&[("base.toml", &google), ("a.toml", own)]);
    let upstream = library(&[&folder]).get("a").unwrap();
    let Some(crate::quota::auth::Auth::ServiceAccount(account)) = &upstream.auth else { panic!() };
    assert_eq!((account.key_file.as_str(), &account.scopes[..]), ("k", &["t".to_owned()][..]));
    assert_eq!(upstream.limits.len(), 2, "a limit of a new name is one more");
}

#[test]
fn lines_are_a_file_that_means_the_same() {
    let base =
        "[columns.site]\nhelp = \"which\"\n[credential.main]\nsecret = { key = \"${env:K}\" }\n";
    let own = "extends = \"base.toml\"\ntitle = \"own\"\n[request]\nheaders = { A = \"b\" }\n\
        [credential.main]\nset = { site = \"x\" }\n[[limit]]\nname = \"z\"\nkind = \"budget\"\namount = 1\n\
        per = \"day\"\ntime_zone = \"UTC\"\nkey = [\"site\"]\n[[limit.for]]\nwhen = { site = \"x\" }\namount = 2\n";
    let folder = folder(&[("base.toml", base), ("a.toml", own)]);
    let lines = library(&[&folder]).lines("a").unwrap();
    let file = |line: &declare::Line| line.file.ends_with("base.toml");
    let inherited: Vec<_> =
        lines.iter().filter(|line| file(line)).map(|line| &line.text[..]).collect();
    let text: Vec<_> = lines.iter().map(|line| &line.text[..]).collect();
    let all = [
        "title = \"own\"",
        "[columns.site]",
        "help = \"which\"",
        "[credential.main]",
        "secret = { key = \"${env:K}\" }",
        "set = { site = \"x\" }",
        "[request]",
        "headers = { A = \"b\" }",
        "[[limit]]",
        "name = \"z\"",
        "kind = \"budget\"",
        "amount = 1",
        "per = \"day\"",
        "time_zone = \"UTC\"",
        "key = [\"site\"]",
        "[[limit.for]]",
        "when = { site = \"x\" }",
        "amount = 2",
    ];
    assert_eq!(text, all);
    assert_eq!(inherited, [all[1], all[2], all[4]]);
    let alone = library(&[&folder]).lines("base").unwrap();
    let numbered: Vec<_> = alone.iter().map(|line| (line.line, &line.text[..])).collect();
    assert_eq!(numbered.first(), Some(&(1, "[columns.site]")), "as it is written");
    assert_eq!(numbered.last(), Some(&(4, all[4])));
}

#[test]
fn of_equal_matches_the_first_by_name_is_taken() {
    let other = PLAIN.replace("\"a\"", "\"b\"");
    let folder = folder(&[("b.toml", &other), ("a.toml", PLAIN)]);
    let matched = library(&[&folder]).match_url("https://x.example/").unwrap();
    assert_eq!(matched.name, "a");
}

#[test]
fn what_is_no_folder_holds_no_file_and_what_is_no_text_is_told() {
    let folder = folder(&[("a.toml", PLAIN)]);
    let file = folder.path().join("a.toml");
    let library = Library::new(vec![file, folder.path().to_owned()]);
    assert_eq!(library.get("a").unwrap().title, "first");
    fs::write(folder.path().join("b.toml"), b"title = \"\xff\"").unwrap();
    let told = library.get("b").unwrap_err().to_string();
    assert!(told.ends_with("save it as UTF-8"), "{told}");
}

#[test]
fn a_name_is_no_path() {
    let folder = folder(&[(".hidden.toml", PLAIN)]);
    fs::create_dir(folder.path().join("sub")).unwrap();
    fs::write(folder.path().join("sub/a.toml"), PLAIN).unwrap();
    for name in [".hidden", "sub/a", ""] {
        let got = library(&[&folder]).get(name);
        assert!(matches!(got, Err(LibraryError::Unknown { .. })), "{name}: {got:?}");
    }
}
