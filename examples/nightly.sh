#!/usr/bin/env bash
# Asks an upstream about every row of a catalogue, and writes a report when all are answered. Start it
# from cron every ten minutes, or by hand: a pass begins once a day at most, and only when the one before
# it is done. Where the quota is smaller than the catalogue a pass takes as many nights as it needs.
#
#     nightly.sh UPSTREAM KEY CATALOGUE.csv REPORT.csv
#
# KEY is the column that tells the rows apart, such as `isbn`. Ends with 0 once today's report is there,
# 75 while calls must wait for their quota, and otherwise with the code that `paceline run` gave.
set -euo pipefail

upstream=$1 key=$2 catalogue=$3 report=$4
today=$(date -u +%F)
pass=$report.pass # the load of the pass that is under way
finished=$report.done # the day on which the last one was done

if [[ -s $pass ]]; then
    load=$(<"$pass")
elif [[ -s $finished && $(<"$finished") == "$today" ]]; then
    exit 0
else
    load=$upstream-$today
    # Added again after a crash, no row is there twice.
    # 3: some rows are wrong. They lie in the rejects file, each with the reason; the rest is queued.
    added=0
    paceline add "$upstream" --csv "$catalogue" --load "$load" --rejects "$report.rejects" \
        --dedupe day --dedupe-key "$load {$key}" >/dev/null || added=$?
    ((added == 0 || added == 3)) || exit "$added"
    echo "$load" >"$pass"
fi

# --single: one such run is enough. --max-wait: a pause of a minute is sat out, the night is not.
ran=0
paceline run "$upstream" --single --max-wait 1m --quiet || ran=$?
case $ran in
    0 | 3 | 75) ;; # 3: some failed; the report says which
    4) echo "paceline needs a person: see paceline why $upstream" >&2 && exit 4 ;;
    *) exit "$ran" ;;
esac

# The quota is spent for now, or another runner is still at work on it.
waits=$(paceline jobs --load "$load" --state queued,running --limit 1 --quiet)
[[ -z $waits ]] || exit 75

paceline results --load "$load" --output "$report.new"
mv "$report.new" "$report"
echo "$today" >"$finished"
rm "$pass"
