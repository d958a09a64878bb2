//! Quota files: what is wrong is told with its place and its fix, and presets are right.

use std::fs;
use std::path::{Path, PathBuf};

use paceline::quota::declare;

fn data(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/quotas").join(folder)
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|kind| kind == "toml")).collect();
    files.sort();
    files
}

fn stem(path: &Path) -> &str {
    path.file_stem().unwrap().to_str().unwrap()
}

/// Beside each bad file stands the text of its error. `ACCEPT=1` writes what it is now.
#[test]
fn every_problem_has_its_place_and_fix() {
    for path in files(&data("bad")) {
        let text = fs::read_to_string(&path).unwrap();
        let shown = format!("{}.toml", stem(&path));
        let error = declare::parse(stem(&path), &shown, &text).unwrap_err();
        let told = format!("{error}\n");
        let expected = path.with_extension("txt");
        if std::env::var_os("ACCEPT").is_some() {
            fs::write(&expected, &told).unwrap();
        }
        assert_eq!(told, fs::read_to_string(&expected).unwrap_or_default(), "{shown}");
    }
}
