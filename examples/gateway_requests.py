"""Looks up what is in stock by `requests`, through a gateway.

    paceline gateway shop -- python3 examples/gateway_requests.py 9780000000002 9780000000019
"""
import os
import sys

import requests

BASE = os.environ["PACELINE_GATEWAY"] + "/shop"

with requests.Session() as session:
    session.trust_env = False  # no other proxy between this script and the gateway
    session.headers["Paceline-Deadline"] = "10m"  # how long a call may wait for its turn
    for isbn in sys.argv[1:]:
        answer = session.get(f"{BASE}/v1/stock/{isbn}", timeout=660)
        if "Paceline-Reason" in answer.headers:
            # Not the shop's answer: nothing was sent. It says which limit, and until when.
            told = answer.json()
            print(told["detail"], file=sys.stderr)
            sys.exit(75)
        print(isbn, answer.status_code, answer.text)
