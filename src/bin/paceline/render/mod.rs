//! How things look to people.

pub mod out;
pub mod table;
pub mod text;
pub mod time;
