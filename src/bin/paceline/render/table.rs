//! Columns that line up.

use super::text::visible;

/// Rows under a header; the last column is as long as it is. Columns that are empty in every row are
/// left out.
pub fn table<const N: usize>(header: [&str; N], rows: &[[String; N]]) -> String {
    let header = header.map(str::to_owned);
    let all: Vec<[String; N]> = std::iter::once(&header)
        .chain(rows)
        .map(|row| row.clone().map(|cell| visible(&cell).into_owned()))
        .collect();
    let mut widths = [0; N];
    for row in &all {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut used = [rows.is_empty(); N];
    for row in rows {
        for (used, cell) in used.iter_mut().zip(row) {
            *used |= !cell.is_empty();
        }
    }
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(widths).zip(used).filter(|(_, used)| *used);
        let cells = cells.map(|((cell, width), _)| {
            let pad = width.saturating_sub(cell.chars().count());
            format!("{cell}{}", " ".repeat(pad))
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    all.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Every line of a text moved to the right.
pub fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_columns_are_left_out() {
        let row = |texts: [&str; 3]| texts.map(str::to_owned);
        let rows = [row(["a", "", "1"]), row(["longer", "", ""])];
        assert_eq!(table(["NAME", "LEFT", "N"], &rows), "NAME    N\na       1\nlonger");
        assert_eq!(table(["NAME", "LEFT", "N"], &[]), "NAME  LEFT  N");
    }
}
