//! Calendar windows: which one an instant falls into, and when the next begins.

use chrono_tz::Tz;

/// The windows of a budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Calendar {
    /// The zone whose local labels mark the resets.
    pub zone: Tz,
    /// How often, and at which label.
    pub resets: Resets,
}

/// The unit of a calendar window, as quota files write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Per {
    /// `hour`
    Hour,
    /// `day`
    Day,
    /// `week`
    Week,
    /// `month`
    Month,
}

/// The local label at which a window begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resets {
    /// Each local hour at this minute.
    Hourly {
        /// 0 to 59.
        minute: u32,
    },
    /// Each local day at this time.
    Daily {
        /// The label.
        time: chrono::NaiveTime,
    },
    /// Each week on this day at this time.
    Weekly {
        /// The day.
        weekday: chrono::Weekday,
        /// The label.
        time: chrono::NaiveTime,
    },
    /// Each month on this day (the last where the month is shorter) at this time.
    Monthly {
        /// 1 to 31.
        day: u32,
        /// The label.
        time: chrono::NaiveTime,
    },
}
