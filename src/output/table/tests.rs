//! Tables of results: types, rows that are replaced, tables that are there.

use serde_json::json;

use super::*;

fn columns() -> Vec<(String, Kind)> {
    let of = |name: &str, kind| (name.to_owned(), kind);
    vec![
        of("id", Kind::Integer),
        of("isbn", Kind::Verbatim),
        of("stock", Kind::Any),
        of(CURSOR, Kind::Text),
    ]
}

fn row(id: u64, isbn: &str, stock: Value) -> Map<String, Value> {
    let row = json!({"id": id, "isbn": isbn, "stock": stock, "cursor": format!("100{id}-{id}")});
    row.as_object().cloned().unwrap()
}

fn text(path: &Path, sql: &str) -> String {
    Connection::open(path).unwrap().query_row(sql, [], |row| row.get(0)).unwrap()
}

#[test]
fn each_value_keeps_its_type() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.db");
    let mut out = TableOut::open(&path, "stock \"1\"", "isbn", &columns()).unwrap();
    let stocks = [
        json!(12),
        json!(0.5),
        json!("0012"),
        json!(true),
        json!(null),
        json!([1, "a"]),
        json!(18_446_744_073_709_551_615_u64),
    ];
    let numbered = (1..).zip(stocks);
    let rows: Vec<_> = numbered.map(|(id, stock)| row(id, &format!("00{id}"), stock)).collect();
    out.write(&rows).unwrap();
    let found = text(
        &path,
        "SELECT group_concat(isbn || ' ' || typeof(isbn) || ' ' || typeof(stock) || ' ' \
         || coalesce(stock, ''), '; ') FROM \"stock \"\"1\"\"\"",
    );
    assert_eq!(
        found,
        "001 text integer 12; 002 text real 0.5; 003 text text 0012; 004 text integer 1; \
         005 text null ; 006 text text [1,\"a\"]; 007 text text 18446744073709551615"
    );
}

#[test]
fn a_row_is_replaced_and_never_by_an_older_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.db");
    let mut out = TableOut::open(&path, "stock", "isbn", &columns()).unwrap();
    out.write(&[row(2, "a", json!(2)), row(3, "a", json!(3))]).unwrap();
    out.write(&[row(1, "a", json!(1)), row(4, "b", json!(4))]).unwrap();
    let all = "SELECT group_concat(isbn || stock) FROM (SELECT * FROM stock ORDER BY isbn)";
    assert_eq!(text(&path, all), "a3,b4");
    let refused = out.write(&[row(5, "c", json!(5)), row(6, "", json!(6))]).unwrap_err();
    assert!(refused.to_string().contains("job 6 has no `isbn`"), "{refused}");
    assert_eq!(text(&path, all), "a3,b4", "all of a chunk or nothing");
}

#[test]
fn a_table_that_is_there_grows_and_keeps_what_it_has() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.db");
    let conn = Connection::open(&path).unwrap();
    let own = "CREATE TABLE stock (ISBN TEXT PRIMARY KEY, shelf TEXT);
        INSERT INTO stock VALUES ('a', 'left'), ('b', 'right');
        CREATE TABLE numbers (isbn INTEGER); CREATE VIEW seen AS SELECT 1 AS isbn;
        CREATE TABLE twice (isbn TEXT); INSERT INTO twice VALUES ('a'), ('a');";
    conn.execute_batch(own).unwrap();
    let mut out = TableOut::open(&path, "stock", "isbn", &columns()).unwrap();
    out.write(&[row(1, "a", json!(7))]).unwrap();
    let all = "SELECT group_concat(isbn || shelf || coalesce(stock, '-')) FROM stock";
    assert_eq!(text(&path, all), "aleft7,bright-");
    let refused = |table: &str, says: &str| {
        let error = TableOut::open(&path, table, "isbn", &columns()).unwrap_err();
        assert!(error.to_string().contains(says) && error.is_usage(), "{error}");
    };
    refused("numbers", "`isbn` of the table `numbers`");
    refused("seen", "is a view");
    refused("twice", "have the same `isbn`");
    let both = [columns(), vec![("ISBN".to_owned(), Kind::Verbatim)]].concat();
    let error = TableOut::open(&path, "other", "isbn", &both).unwrap_err();
    assert!(error.to_string().contains("`isbn` and `ISBN` are one"), "{error}");
    std::fs::write(&path, "no database at all, but long enough to be read as one".repeat(9))
        .unwrap();
    refused("stock", "is no SQLite file");
}
