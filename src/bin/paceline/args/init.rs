//! `init`.

use clap::Args;

use super::add::Header;

/// Writes a first quota file.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  paceline init                        # on a terminal: asks
  paceline init shop --url 'https://api.shop.example/v1/stock/{isbn}' --rate 10/s --budget 200/day
  paceline init crm --url https://crm.example/v2/contacts --method POST --rate 60/min --burst 5 \\
      --secret-env CRM_KEY --budget 10000/day --time-zone America/New_York

Writes quotas/NAME.toml, or NAME.toml in the folder of --quotas, and replaces nothing. The file is
complete and valid; docs/quota-files.md describes all that can be added.")]
pub struct InitArgs {
    /// What the upstream is to be called: letters, digits, `-`, `_`
    pub name: Option<String>,
    /// The address called; {column} stands for a column of your rows
    #[arg(long, value_name = "TEMPLATE")]
    pub url: Option<String>,
    /// The method, such as POST [default: GET]
    #[arg(long, value_name = "METHOD")]
    pub method: Option<String>,
    /// What it allows: 10/s, 60/min, 1/5s; may be given more than once
    #[arg(long, value_name = "N/SPAN")]
    pub rate: Vec<String>,
    /// So many calls of the first --rate may go back to back [default: 1]
    #[arg(long, value_name = "N", requires = "rate", value_parser = clap::value_parser!(u64).range(1..))]
    pub burst: Option<u64>,
    /// What it allows by the calendar: 200/day, 50/hour, 10000/month; may be given more than once
    #[arg(long, value_name = "N/PER")]
    pub budget: Vec<String>,
    /// Where that day begins: an IANA zone [default: unknown, which is safe everywhere]
    #[arg(long, value_name = "ZONE", requires = "budget")]
    pub time_zone: Option<String>,
    /// At most so many calls at once
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub concurrency: Option<u64>,
    /// The environment variable that holds the key; sent as `Authorization: Bearer KEY`, unless a
    /// --header or the address has ${env:NAME}
    #[arg(long, value_name = "NAME")]
    pub secret_env: Option<String>,
    /// A header of each call; may be given more than once
    #[arg(long, value_name = "NAME: VALUE")]
    pub header: Vec<Header>,
    /// Print the file instead of writing it
    #[arg(long)]
    pub print: bool,
}
