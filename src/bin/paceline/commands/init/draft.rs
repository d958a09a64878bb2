//! The quota file that is written.

use paceline::quota::{Upstream, declare};
use paceline::template::Template;

use crate::args::init::InitArgs;
use crate::exit::{Usage, wrong};

/// What the file says.
#[derive(Debug)]
pub struct Draft {
    url: String,
    method: Option<String>,
    headers: Vec<(String, String)>,
    rates: Vec<String>,
    burst: u64,
    budgets: Vec<(u64, String)>,
    zone: String,
    concurrency: Option<u64>,
}

impl Draft {
    /// From what was said; what must be a number, or a pair, is checked here, the rest by whoever reads
    /// the file.
    pub fn of(args: &InitArgs) -> anyhow::Result<Draft> {
        let url = args.url.clone().unwrap_or_default();
        let mut headers: Vec<(String, String)> =
            args.header.iter().map(|header| (header.name.clone(), header.value.clone())).collect();
        if let Some(name) = &args.secret_env {
            let placeholder = format!("${{env:{name}}}");
            let placed = url.contains(&placeholder)
                || headers.iter().any(|(_, value)| value.contains(&placeholder));
            if !placed {
                headers.push(("Authorization".to_owned(), format!("Bearer {placeholder}")));
            }
        }
        Ok(Draft {
            url,
            method: args.method.as_ref().map(|method| method.to_uppercase()),
            headers,
            rates: args.rate.clone(),
            burst: args.burst.unwrap_or(1),
            budgets: args.budget.iter().map(|text| budget(text)).collect::<anyhow::Result<_>>()?,
            zone: args.time_zone.clone().unwrap_or_else(|| "unknown".to_owned()),
            concurrency: args.concurrency,
        })
    }

    /// The file.
    pub fn text(&self, name: &str) -> String {
        let mut text = format!(
            "# What {name} allows. Every field is described in docs/quota-files.md.\nschema = 1\nname = {}\n",
            quoted(name)
        );
        text.push_str("\n[request]\n");
        if let Some(method) = &self.method {
            text.push_str(&format!("method = {}\n", quoted(method)));
        }
        text.push_str(&format!("url = {}\n", quoted(&self.url)));
        if !self.headers.is_empty() {
            let pairs = self.headers.iter();
            let pairs: Vec<_> = pairs
                .map(|(name, value)| format!("{} = {}", quoted(name), quoted(value)))
                .collect();
            text.push_str(&format!("headers = {{ {} }}\n", pairs.join(", ")));
        }
        for (at, rate) in self.rates.iter().enumerate() {
            text.push_str(&limit(&named("rate", at), "rate"));
            text.push_str(&format!("rate = {}\n", quoted(rate)));
            if at == 0 && self.burst > 1 {
                text.push_str(&format!("burst = {}\n", self.burst));
            }
        }
        for (at, (amount, per)) in self.budgets.iter().enumerate() {
            text.push_str(&limit(&named(per, at), "budget"));
            text.push_str(&format!("amount = {amount}\nper = {}\n", quoted(per)));
            let told = match self.zone.as_str() {
                "unknown" => "    # nobody says where it begins: 25 hours are counted for a day",
                _ => "    # where it begins",
            };
            text.push_str(&format!("time_zone = {}{told}\n", quoted(&self.zone)));
        }
        if let Some(amount) = self.concurrency {
            text.push_str(&limit("in-flight", "concurrency"));
            text.push_str(&format!("amount = {amount}\n"));
        }
        text
    }
}

fn limit(name: &str, kind: &str) -> String {
    format!("\n[[limit]]\nname = {}\nkind = {}\n", quoted(name), quoted(kind))
}

/// A limit's name, which no other has.
fn named(name: &str, at: usize) -> String {
    if at == 0 { name.to_owned() } else { format!("{name}-{}", at + 1) }
}

/// `200/day`.
fn budget(text: &str) -> anyhow::Result<(u64, String)> {
    let wrong = || Usage(format!("`{text}` is no budget: write one such as 200/day"));
    let (amount, per) = text.split_once('/').ok_or_else(wrong)?;
    let amount = amount.trim().replace('_', "").parse().map_err(|_| wrong())?;
    let per = per.trim();
    match per {
        "hour" | "day" | "week" | "month" => Ok((amount, per.to_owned())),
        _ => crate::exit::wrong(format!(
            "`{text}` is no budget: it is counted by hour, day, week or month, as in 200/day; \
             a shorter span is a --rate"
        )),
    }
}

/// As TOML writes text.
fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

/// The columns that the address of an upstream needs, in their order.
pub fn columns(upstream: &Upstream) -> Vec<String> {
    let url = upstream.request.url.as_deref().and_then(|url| Template::parse(url).ok());
    url.map(|url| url.columns().into_iter().map(str::to_owned).collect()).unwrap_or_default()
}

/// Whether a rate can be declared so.
pub fn check_rate(rate: &str) -> anyhow::Result<()> {
    check_part(&format!("{}rate = {}\n", limit("rate", "rate"), quoted(rate)))
}

/// Whether so many calls of a rate may go back to back.
pub fn check_burst(rate: &str, burst: &str) -> anyhow::Result<()> {
    let Some(burst) = burst.parse().ok().filter(|burst: &u64| *burst > 0) else {
        return wrong(format!("`{burst}` is no whole number from 1"));
    };
    let rate = quoted(rate);
    check_part(&format!("{}rate = {rate}\nburst = {burst}\n", limit("rate", "rate")))
}

/// Whether a budget can be declared so, in that zone.
pub fn check_budget(text: &str, zone: &str) -> anyhow::Result<()> {
    let (amount, per) = budget(text)?;
    let (per, zone) = (quoted(&per), quoted(zone));
    let fields = format!("amount = {amount}\nper = {per}\ntime_zone = {zone}\n");
    check_part(&format!("{}{fields}", limit("budget", "budget")))
}

/// Whether an address can be declared so.
pub fn check_address(url: &str) -> anyhow::Result<()> {
    check_url(url)?;
    check_part(&format!("[request]\nurl = {}\n", quoted(url)))
}

/// A part of the file, read as the whole will be.
fn check_part(part: &str) -> anyhow::Result<()> {
    match declare::parse("new", "new.toml", &format!("name = \"new\"\n{part}")) {
        Ok(_) => Ok(()),
        Err(error) => wrong(super::problems(&error)),
    }
}

/// Whether a variable can have that name: a key itself may have been typed.
pub fn check_variable(name: &str) -> anyhow::Result<()> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    match name.chars().all(plain) && !name.starts_with(|c: char| c.is_ascii_digit()) {
        true => Ok(()),
        false => wrong("that is no variable's name: write its name, not the key, as in SHOP_KEY"),
    }
}

/// Whether an address can be called: with its columns filled it is one.
pub fn check_url(url: &str) -> anyhow::Result<()> {
    if !url.starts_with("http://") && !url.starts_with("https://") {
        return wrong(format!("`{url}` is no address: write one that begins with https://"));
    }
    Ok(())
}
