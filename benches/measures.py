#!/usr/bin/env python3
"""Measures of the whole program, each against a strict practice upstream on this machine.

  cargo build --release --example upstream --bin paceline
  benches/measures.py                 all of them, some ten minutes
  benches/measures.py add look        some
  benches/measures.py --rows 100000   with fewer rows in the large queue

  add     rows from CSV with keys in no order: rows a second, the first and the last sixth, memory
  look    at the large queue: first call, `status`, `why`; also where all is for later
  idle    `run --follow` with nothing to do: CPU and memory
  two     two processes on one store, unpaced, against one: calls a second, the longest wait
  fast    2,000 calls a second: of one process and of four
  kill    200 calls a second, with a `kill -9` and a restart in the middle

Standard library only. PACELINE_BIN, UPSTREAM_BIN: other binaries than those in target/release.
"""

import argparse
import json
import os
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BIN = os.environ.get("PACELINE_BIN", ROOT + "/target/release/paceline")
UPSTREAM = os.environ.get("UPSTREAM_BIN", ROOT + "/target/release/examples/upstream")
PORT = 18090


class Home:
    """A folder with a store and quota files, and the commands on them."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="paceline-measures-")
        os.mkdir(self.folder + "/quotas")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def quota(self, name, rate=None, burst=1):
        text = f'schema = 1\nname = "{name}"\n[request]\nurl = "http://127.0.0.1:{PORT}/call?i={{i}}"\n'
        if rate:
            text += f'[[limit]]\nname = "plan"\nkind = "rate"\nrate = "{rate}/s"\nburst = {burst}\ncounted = "bucket"\n'
        with open(self.path(f"quotas/{name}.toml"), "w") as file:
            file.write(text)

    def rows(self, count, name="rows.csv"):
        keys = random.Random(7)
        with open(self.path(name), "w") as file:
            file.write("i\n")
            for _ in range(count):
                file.write(f"{keys.getrandbits(64):016x}\n")
        return self.path(name)

    def start(self, *arguments):
        command = [BIN, "--store", self.path("queue.db"), "--quotas", self.path("quotas"), "--quiet"]
        return subprocess.Popen(command + list(arguments), stdout=subprocess.DEVNULL)

    def run(self, *arguments, code=0):
        """Seconds that it took, its CPU seconds, its peak memory in MiB."""
        began = time.monotonic()
        took = ended(self.start(*arguments), code)
        return time.monotonic() - began, *took

    def read(self, query):
        with sqlite3.connect(f"file:{self.path('queue.db')}?mode=ro", uri=True) as connection:
            return connection.execute(query).fetchall()


def ended(process, code=0):
    """Waits for it: its CPU seconds and its peak memory in MiB."""
    peak = 0
    while True:
        peak = max(peak, resident(process.pid))
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            break
        time.sleep(0.01)
    process.returncode = os.waitstatus_to_exitcode(status)
    if code is not None and process.returncode != code:
        raise SystemExit(f"{process.args} ended with {process.returncode}, not {code}")
    return usage.ru_utime + usage.ru_stime, peak


def resident(pid):
    try:
        with open(f"/proc/{pid}/statm") as file:
            return int(file.read().split()[1]) * resource.getpagesize() / 2**20
    except (OSError, IndexError):
        return 0


class Upstream:
    """The practice upstream, for as long as it is needed."""

    def __init__(self, rate=None, burst=None):
        figures = [str(figure) for figure in (rate, burst) if figure]
        self.process = subprocess.Popen([UPSTREAM, str(PORT), *figures], stdout=subprocess.PIPE)
        self.process.stdout.readline()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT)
        self.process.wait()

    def stats(self):
        return json.loads(self.get("_stats"))

    def count(self):
        return int(self.get("_count").split()[0])

    def get(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/{path}", timeout=30) as answer:
            return answer.read().decode()


def tell(what, **figures):
    def shown(value):
        return f"{value:,.3f}" if isinstance(value, float) else f"{value:,}"
    print(f"{what}: " + ", ".join(f"{name} {shown(value)}" for name, value in figures.items()), flush=True)


def measure_add(home, rows):
    file = home.rows(rows)
    home.quota("large")
    process = home.start("add", "large", "--csv", file)
    began, seen = time.monotonic(), []
    peak = 0
    while process.poll() is None:
        peak = max(peak, resident(process.pid))
        try:
            seen.append((time.monotonic() - began, home.read("SELECT max(id) FROM job")[0][0] or 0))
        except sqlite3.OperationalError:
            pass
        time.sleep(0.02)
    took = time.monotonic() - began
    if process.returncode:
        raise SystemExit(f"add ended with {process.returncode}")
    seen.append((took, rows))
    sixth = rows // 6
    first = next(at for at, added in seen if added >= sixth)
    last = took - next(at for at, added in seen if added >= rows - sixth)
    tell("add", rows_a_second=round(rows / took), first_sixth=round(sixth / first),
         last_sixth=round(sixth / max(last, 0.001)), peak_MiB=round(peak))


def measure_look(home, rows):
    file = home.path("rows.csv")
    home.quota("later")
    home.quota("queue")
    home.quota("large")
    run = home.run("add", "later", "--csv", file, "--not-before", "1d", "--dedupe", "none")
    tell("add for later", seconds=run[0])
    for what, arguments in (("status", ["status"]), ("why", ["why", "large"]), ("why, all for later", ["why", "later"])):
        times = sorted(home.run(*arguments)[0] for _ in range(5))
        tell(what, median_s=times[2], most_s=times[-1])
    for name, code in (("large", 75), ("later", 75)):
        first_call(home, name, code)


def first_call(home, name, code):
    """From the start of `run` to the first call's arrival; where none may go, to its end."""
    times = []
    for _ in range(5):
        with Upstream() as upstream:
            began = time.monotonic()
            process = home.start("run", name, "--count", "1", "--max-wait", "0")
            while name == "large" and process.poll() is None and not upstream.count():
                pass
            if name == "later":
                process.wait()
            times.append(time.monotonic() - began)
            ended(process, None) if process.returncode is None else None
    times.sort()
    tell(f"start to {'first call' if name == 'large' else 'end, all for later'}", median_s=times[2], most_s=times[-1])


def measure_idle(home, _):
    home.quota("idle")
    process = home.start("run", "idle", "--follow")
    time.sleep(2)
    before, seconds = ticks(process.pid), 20
    time.sleep(seconds)
    share = (ticks(process.pid) - before) / seconds
    memory = resident(process.pid)
    process.send_signal(signal.SIGTERM)
    process.wait()
    tell("idle", percent_of_a_core=100 * share, MiB=memory)


def ticks(pid):
    """CPU seconds, to the nanosecond where the kernel tells them."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/schedstat") as file:
            total += int(file.read().split()[0])
    return total / 1e9


def measure_two(_, __):
    calls = 60_000
    alone = [unpaced(calls, 1) for _ in range(3)]
    both = [unpaced(calls, 2) for _ in range(3)]
    rates = [sorted(rate for rate, _ in runs)[1] for runs in (alone, both)]
    tell("two processes, unpaced", one_a_second=round(rates[0]), two_a_second=round(rates[1]),
         ratio=rates[1] / rates[0], longest_wait_s=max(wait for _, wait in both))


def unpaced(calls, processes):
    """Calls a second, and the longest time in which a process sent nothing; each has an upstream."""
    with Home() as home, Upstream() as upstream:
        names = [f"up{n}" for n in range(processes)]
        for name in names:
            home.quota(name)
            home.run("add", name, "--csv", home.rows(calls // processes))
        running = [home.start("run", name) for name in names]
        for process in running:
            ended(process)
        gap = "SELECT max(gap) FROM (SELECT sent_at - lag(sent_at) OVER (PARTITION BY upstream_id ORDER BY sent_at) AS gap FROM attempt JOIN job ON job.id = job_id)"
        stats = upstream.stats()
        return stats["count"] / stats["span_s"], home.read(gap)[0][0] / 1e9


def measure_fast(_, __):
    for processes in (1, 4):
        paced("2,000 a second", 2000, 100, 60_000, processes)


def measure_kill(_, __):
    for _ in range(5):
        paced("200 a second, killed", 200, 20, 3000, 1, kill_at=1500)


def paced(what, rate, burst, calls, processes, kill_at=None):
    with Home() as home, Upstream(rate, burst) as upstream:
        home.quota("paced", rate, burst)
        home.run("add", "paced", "--csv", home.rows(calls))
        running = [home.start("run", "paced") for _ in range(processes)]
        if kill_at:
            while upstream.count() < kill_at:
                time.sleep(0.01)
            running[0].kill()
            running[0].wait()
            running = [home.start("run", "paced")]
        cpu = sum(ended(process)[0] for process in running)
        stats = upstream.stats()
        ideal = (stats["count"] - burst) / rate
        sent = [at / 1e9 for at, in home.read("SELECT sent_at FROM attempt ORDER BY sent_at")]
        tell(f"{what}, {processes} at work", calls=stats["count"], of_the_ideal=ideal / stats["span_s"],
             refused=stats["refused"], over=stats["rules"][0]["excess_offered"],
             over_when_sent=excess(sent, rate, burst), cpu_s_per_1000=cpu * 1000 / calls)


def excess(sent, rate, burst):
    """By how many calls the worst span was over burst + rate x its length, by our own clock: what is over
    at the upstream only was held up on the way."""
    worst, least = -float("inf"), float("inf")
    for number, at in enumerate(sent):
        ahead = number - rate * at
        least = min(least, ahead)
        worst = max(worst, ahead - least + 1 - burst)
    return round(worst, 3)


MEASURES = {"add": measure_add, "look": measure_look, "idle": measure_idle, "two": measure_two,
            "fast": measure_fast, "kill": measure_kill}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measures", nargs="*", metavar="MEASURE", help=", ".join(MEASURES))
    parser.add_argument("--rows", type=int, default=1_200_000)
    arguments = parser.parse_args()
    wanted = arguments.measures or list(MEASURES)
    if unknown := set(wanted) - set(MEASURES):
        parser.error(f"no such measure: {', '.join(sorted(unknown))}")
    if "look" in wanted and "add" not in wanted:
        wanted.insert(0, "add")
    with Home() as home:
        for name in MEASURES:
            if name in wanted:
                MEASURES[name](home, arguments.rows)


main()
