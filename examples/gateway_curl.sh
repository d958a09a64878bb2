#!/usr/bin/env bash
# Looks up what is in stock by curl, through a gateway: the quota is kept whatever else calls beside it.
#
#     paceline gateway shop -- bash examples/gateway_curl.sh 9780000000002 9780000000019
set -euo pipefail

for isbn in "$@"; do
    # Waits for its turn for up to ten minutes.
    answer=$(curl --silent --show-error --max-time 660 --header 'Paceline-Deadline: 10m' \
        --write-out '\n%{http_code} %header{paceline-reason}' "$PACELINE_GATEWAY/shop/v1/stock/$isbn")
    read -r status reason <<<"${answer##*$'\n'}"
    body=${answer%$'\n'*}
    if [[ $reason ]]; then
        # Not the shop's answer: nothing was sent. The text says which limit, and until when.
        echo "$body" >&2
        exit 75
    fi
    echo "$isbn $status $body"
done
