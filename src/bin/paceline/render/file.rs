//! Files that a command writes: none of them over a store.

use std::fs::File;
use std::path::Path;

use paceline::store::sqlite::is_store;

use crate::context::Context;
use crate::exit::{Usage, wrong};

/// What SQLite keeps beside a store, by the end of its name.
const BESIDE: [&str; 3] = ["-wal", "-shm", "-journal"];

/// Makes the file that `flag` names, or empties it.
pub fn make(flag: &str, path: &Path, context: &Context) -> anyhow::Result<File> {
    refuse_store(flag, path, context)?;
    let cannot = |error| Usage(format!("{flag}: `{}` cannot be written: {error}", path.display()));
    Ok(File::create(path).map_err(cannot)?)
}

/// Refuses a file that is a store, or a part of one.
pub fn refuse_store(flag: &str, path: &Path, context: &Context) -> anyhow::Result<()> {
    // A pipe is none, and a look into it would take what stands there.
    if !path.is_file() {
        return Ok(());
    }
    let text = path.to_string_lossy();
    let whole = BESIDE.into_iter().find_map(|end| text.strip_suffix(end)).map(Path::new);
    let is_one = |path: &Path| is_store(path) || is_ours(path, context);
    if is_one(path) || whole.is_some_and(is_one) {
        return wrong(format!(
            "{flag}: {} is a store of Paceline's own; choose another file",
            path.display()
        ));
    }
    Ok(())
}

/// Whether it is the store at work, even where that one cannot be read.
fn is_ours(path: &Path, context: &Context) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    let store = context.store_path().ok();
    store.is_some_and(|store| real(path).is_some() && real(path) == real(&store))
}
