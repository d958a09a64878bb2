//! What every command works with: the store, the quota files, the way out.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chrono_tz::Tz;
use paceline::client::usual_store;
use paceline::clock::{Clock as _, SystemClock, Timestamp};
use paceline::quota::Upstream;
use paceline::quota::library::{Library, LibraryError};
use paceline::store::sqlite::{Options, SqliteStore, Sync};
use paceline::store::{Store as _, StoreError};

use crate::args::{Global, SyncRule};
use crate::exit::{Usage, wrong};
use crate::render::out::Out;
use crate::render::text::complain;
use crate::render::time::Times;
use crate::settings::Settings;

/// What every command works with.
#[derive(Debug)]
pub struct Context {
    /// The flags that all commands share.
    pub global: Global,
    /// What the file of defaults says.
    pub settings: Settings,
    /// stdout.
    pub out: Out,
    library: RefCell<Option<Arc<Library>>>,
    /// Where the store lies that stands in for one that is not there.
    stand_in: RefCell<Option<tempfile::TempDir>>,
}

impl Context {
    /// From the flags, the environment and the file of defaults, in this order. No store or quota file is
    /// opened yet.
    ///
    /// # Errors
    ///
    /// One of these says what cannot be meant, or a file that they name cannot be read.
    pub fn new(global: Global) -> anyhow::Result<Context> {
        let global = global.or_environment()?;
        let settings = Settings::load(global.config.as_deref())?;
        let global = global.or_settings(&settings);
        if let Some(file) = &global.env_file {
            provide(file)?;
        }
        let (library, stand_in) = Default::default();
        Ok(Context { global, settings, out: Out::new(), library, stand_in })
    }

    /// Opens the store, or makes it.
    pub fn store(&self) -> anyhow::Result<SqliteStore> {
        let path = self.store_path()?;
        let sync = match self.global.sync.unwrap_or_default() {
            SyncRule::Normal => Sync::Charges,
            SyncRule::Full => Sync::All,
        };
        let options = Options { sync, ..Options::new(path, Arc::new(SystemClock::new())) };
        Ok(SqliteStore::open(options)?)
    }

    /// Opens the store to look at it. One that is not there is not made for that: an empty one stands in.
    pub fn look(&self) -> anyhow::Result<SqliteStore> {
        let path = self.store_path()?;
        if path.exists() {
            return self.store();
        }
        self.note(&format!("no store at {} yet: `paceline add` makes it", path.display()));
        let folder = tempfile::tempdir()?;
        let options = Options::new(folder.path().join("none.db"), Arc::new(SystemClock::new()));
        let store = SqliteStore::open(options)?;
        self.stand_in.replace(Some(folder));
        Ok(store)
    }

    /// Refuses a folder of quota files that is not there.
    pub fn check_quotas(&self) -> anyhow::Result<()> {
        match &self.global.quotas {
            Some(folder) if !folder.is_dir() => wrong(format!(
                "there is no folder `{}` for --quotas (or PACELINE_QUOTAS)",
                folder.display()
            )),
            _ => Ok(()),
        }
    }

    /// The store's file.
    pub fn store_path(&self) -> anyhow::Result<PathBuf> {
        match &self.global.store {
            Some(store) => given(store),
            None => usual(),
        }
    }

    /// The quota files.
    pub fn library(&self) -> Arc<Library> {
        let mut library = self.library.borrow_mut();
        let usual = || Arc::new(Library::usual(self.global.quotas.as_deref()));
        Arc::clone(library.get_or_insert_with(usual))
    }

    /// The upstream of that name.
    pub fn upstream(&self, name: &str) -> anyhow::Result<Arc<Upstream>> {
        Ok(self.library().get(name)?)
    }

    /// The upstreams that have, or had, jobs here; those whose quota file cannot be used are left out.
    pub async fn declared(
        &self,
        store: &SqliteStore,
    ) -> Result<BTreeMap<String, Arc<Upstream>>, StoreError> {
        let library = self.library();
        let names = store.upstream_names().await?;
        let known =
            names.into_iter().filter_map(|name| Some((name.clone(), library.get(&name).ok()?)));
        Ok(known.collect())
    }

    /// The zone that a limit's calendar is of.
    pub fn zone(&self, upstream: &str, limit: &str) -> Option<Tz> {
        let upstream = self.library().get(upstream).ok()?;
        upstream.limit(limit)?.rule.calendar().map(|calendar| calendar.zone)
    }

    /// Refuses a name that is neither declared nor in the store.
    pub async fn check_name(&self, store: &SqliteStore, name: &str) -> anyhow::Result<()> {
        match self.library().get(name) {
            Err(error @ LibraryError::Unknown { .. })
                if !store.upstream_names().await?.iter().any(|known| known == name) =>
            {
                Err(error.into())
            }
            _ => Ok(()),
        }
    }

    /// What the wall clock shows.
    pub fn wall(&self) -> Timestamp {
        SystemClock::new().wall()
    }

    /// Times as people are shown them.
    pub fn times(&self) -> Times {
        Times::new(self.wall())
    }

    /// Says something by the way, on stderr; not with `--quiet`.
    pub fn note(&self, text: &str) {
        if !self.global.quiet {
            self.complain(text);
        }
    }

    /// Says something that must be heard, on stderr.
    pub fn complain(&self, text: &str) {
        complain(text);
    }

    /// Whether somebody can be asked.
    pub fn can_ask(&self) -> bool {
        std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
    }
}

/// Secrets of a file, for all who look one up.
fn provide(file: &Path) -> anyhow::Result<()> {
    let shown = file.display();
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) => {
            return wrong(format!("the file `{shown}` of --env-file cannot be read: {error}"));
        }
    };
    match paceline::secrets::parse_env(&text) {
        Ok(variables) => paceline::secrets::provide(variables),
        Err(error) => return wrong(format!("{shown}:{error}")),
    }
    Ok(())
}

fn given(store: &OsString) -> anyhow::Result<PathBuf> {
    let text = store.to_string_lossy();
    if text.starts_with("postgres://") || text.starts_with("postgresql://") {
        return wrong(
            "a Postgres store is not supported yet; give --store (or PACELINE_STORE) the path of a file",
        );
    }
    if text.is_empty() {
        return wrong(
            "the store's path is empty; give --store (or PACELINE_STORE) the path of a file",
        );
    }
    Ok(PathBuf::from(store))
}

fn usual() -> anyhow::Result<PathBuf> {
    usual_store().ok_or_else(|| {
        Usage("no home folder for the store; choose a file with --store".to_owned()).into()
    })
}
