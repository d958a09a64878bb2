//! Wherever a name is typed, the one that was meant is told.

use super::bench::Bench;

#[test]
fn the_name_that_was_meant_is_told() {
    let bench = Bench::new();
    bench.run("add shop --set isbn=1 --load autumn").ends(0);
    bench.run("add engine https://a.example/1").ends(0);
    for (line, told) in [
        ("stauts", "'status'"),
        ("run --max-wiat 0", "'--max-wait'"),
        ("run shpo", "there is no upstream `shpo` (did you mean `shop`?)"),
        ("why shpo", "(did you mean `shop`?)"),
        ("jobs --upstream shpo", "(did you mean `shop`?)"),
        ("quotas show indexnwo", "(did you mean `indexnow`?)"),
        ("results --load autmn", "there is no load `autmn` (did you mean `autumn`?)"),
        ("jobs --state queud", "`queud` is no job state (did you mean `queued`?)"),
        ("jobs --reason rate_limitd", "`rate_limitd` is no reason (did you mean `rate_limited`?)"),
        ("log --reason not_fuond", "(did you mean `not_found`?)"),
        ("retry --reason dedline --yes", "(did you mean `deadline`?)"),
        ("jobs --where isnb=1", "has a column `isnb` (did you mean `isbn`?)"),
        ("cancel --where isnb=1 --yes", "(did you mean `isbn`?)"),
        ("log --where isnb=1", "(did you mean `isbn`?)"),
        (
            "budget spend shop 1 --limit dialy",
            "no budget or rolling limit `dialy` (did you mean `daily`?)",
        ),
        ("budget spend engine 1", "the limit `daily` counts by site: say --key site=VALUE"),
        ("budget spend shop 1 --key a=b", "counts all jobs together: leave --key out"),
        (
            "hold engine --key siet=x",
            "does not tell jobs apart by `siet` (did you mean `site`?), but by site",
        ),
        ("run --fail-on faild", "'failed'"),
        ("calendar --per day --time-zone Europe/Berln", "did you mean `Europe/Berlin`?"),
    ] {
        let said = bench.run(line).ends(2);
        assert!(said.err.contains(told), "{line}: {}", said.err);
    }
    bench.run("resume engine --key siet=x").ends(0).tells(&["did you mean `site`?"]);
    // A name that is near none, and one that is right and finds nothing, are told as that.
    bench.run("jobs --where colour=1").ends(0);
    bench.run("jobs --where isbn=2").ends(0);
    bench.run("jobs --reason resolved").ends(0);
    let keyed =
        format!("{}[credential.main]\nsecret = {{ key = \"${{env:K}}\" }}\n", super::bench::SHOP);
    bench.write("quotas/shop.toml", keyed);
    let said = bench.run("add shop --set isbn=2 --credential mian").ends(2);
    assert!(
        said.err.contains("there is no credential `mian` (did you mean `main`?)"),
        "{}",
        said.err
    );
}
