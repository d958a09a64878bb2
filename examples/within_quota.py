"""Looks up what is in stock, one call for each ISBN. It knows nothing of quotas: the gateway keeps them.

    paceline gateway -- python3 examples/within_quota.py 9780000000002 9780000000019
"""
import os, sys, urllib.error, urllib.request

# The one line that a script without a gateway has otherwise: its base URL.
BASE = os.environ["PACELINE_GATEWAY"] + "/shop"

for isbn in sys.argv[1:]:
    try:
        with urllib.request.urlopen(f"{BASE}/v1/stock/{isbn}") as answer:
            print(isbn, answer.read().decode())
    except urllib.error.HTTPError as refusal:
        # Ours are marked. Nothing was sent; the text says which limit, and until when.
        if refusal.headers["Paceline-Reason"]:
            sys.exit(refusal.read().decode())
        print(isbn, "was answered", refusal.code)
