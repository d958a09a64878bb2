#!/usr/bin/env bash
# Sends what may be sent now, from a script: one runner at a time, silent unless a person is needed.
#   bash run-once.sh [UPSTREAM...]
set -euo pipefail

code=0
paceline run "$@" --single --quiet --max-wait 1m || code=$?
case $code in
    0) echo "all done, or another runner is at work" ;;
    75) echo "work remains, and waits for its quota" ;;
    3) echo "some jobs failed, expired or are unsure: paceline jobs --state failed,expired,unsure" >&2 ;;
    4) echo "something is held: paceline status" >&2 ;;
    *) echo "paceline ended with $code" >&2 ;;
esac
# For whoever started this: waiting is no failure.
[[ $code -eq 75 ]] || exit "$code"
