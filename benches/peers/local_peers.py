# Paceline's lines for a kit that runs queues side by side against one practice upstream: the kit reads
# this file with its own `peer(...)` in scope. Make it known to the kit by a link beside its `run.py`:
#
#     ln -s "$PWD/benches/peers/local_peers.py" KIT/local_peers.py
#     cargo build --release && KIT/run.py -p ceiling,paceline
#
# PACELINE_BIN names another binary than the one in target/release.

PEER = os.path.join(os.path.dirname(os.path.realpath(HERE + "/local_peers.py")), "paceline.sh")

peer("paceline", [PEER, "work"], [PEER, "enqueue"],
     kind="SQLite WAL, synchronous=NORMAL, attempts recorded before they leave",
     how="64 in flight; W2 limit rate 200/s burst 20")
peer("paceline-full", [PEER, "work"], [PEER, "enqueue"], env={"PACELINE_SYNC": "full"},
     kind="SQLite WAL, synchronous=FULL (--sync full)",
     how="64 in flight; W2 limit rate 200/s burst 20")
