#!/bin/sh
# Paceline as one of several queues that are measured on the same work: `enqueue` adds BENCH_N calls of
# BENCH_URL?i=0.. to a store in BENCH_DIR and prints how long that took; `work` sends them, at most
# BENCH_CONC at once and within BENCH_RATE (a second) and BENCH_BURST, 0 for no limit.
set -eu
home=$(dirname "$(dirname "$(dirname "$(readlink -f "$0")")")")
paceline=${PACELINE_BIN:-$home/target/release/paceline}
store="$BENCH_DIR/paceline.db"
quotas="$BENCH_DIR/quotas"
sync=${PACELINE_SYNC:-normal}

quota() {
    mkdir -p "$quotas"
    printf 'schema = 1\nname = "bench"\n\n[request]\nurl = "%s?i={i}"\n' "$BENCH_URL"
    if [ "${BENCH_RATE:-0}" -gt 0 ]; then
        printf '\n[[limit]]\nname = "plan"\nkind = "rate"\nrate = "%s/s"\nburst = %s\ncounted = "bucket"\n' \
            "$BENCH_RATE" "$BENCH_BURST"
    fi
}

case $1 in
enqueue)
    mkdir -p "$quotas"
    quota >"$quotas/bench.toml"
    { echo i; seq 0 $((BENCH_N - 1)); } >"$BENCH_DIR/rows.csv"
    from=$(date +%s%N)
    "$paceline" --store "$store" --quotas "$quotas" --sync "$sync" --quiet add bench --csv "$BENCH_DIR/rows.csv"
    to=$(date +%s%N)
    printf '{"enqueue_s": %s}\n' "$(echo "$from $to" | awk '{ printf "%.4f", ($2 - $1) / 1e9 }')"
    ;;
work)
    exec "$paceline" --store "$store" --quotas "$quotas" --sync "$sync" --quiet run bench \
        --concurrency "${BENCH_CONC:-64}"
    ;;
*)
    echo "usage: $0 enqueue | work" >&2
    exit 2
    ;;
esac
