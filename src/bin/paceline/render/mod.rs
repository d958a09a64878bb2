//! How things look to people.

pub mod file;
pub mod out;
pub mod table;
pub mod text;
pub mod time;
