//! Where quota files are found.
