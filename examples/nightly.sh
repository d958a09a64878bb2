#!/usr/bin/env bash
# Asks an upstream about every row of a catalogue, once a night, and writes a report when all are
# answered. Start it from cron every ten minutes, or by hand: what was added today is not added again,
# what was sent is not sent again.
#
#     nightly.sh UPSTREAM CATALOGUE.csv REPORT.csv
#
# Ends with 0 once the report is there, 75 while calls must wait for their quota, and otherwise with
# the code that `paceline run` gave.
set -euo pipefail

upstream=$1 catalogue=$2 report=$3
load="$upstream-$(date -u +%F)"

# 3: some rows are wrong. They lie in the rejects file, each with the reason; the rest is queued.
added=0
paceline add "$upstream" --csv "$catalogue" --load "$load" --dedupe day \
    --rejects "$report.rejects" >/dev/null || added=$?
((added == 0 || added == 3)) || exit "$added"

# --single: one such run is enough. --max-wait: a pause of a minute is sat out, the night is not.
ran=0
paceline run "$upstream" --single --max-wait 1m --quiet || ran=$?

case $ran in
    0 | 3) paceline results --load "$load" --format csv >"$report" ;; # 3: some failed; the report says which
    75) exit 75 ;; # the quota is spent for now
    4) echo "paceline needs a person: see paceline why $upstream" >&2 && exit 4 ;;
    *) exit "$ran" ;;
esac
