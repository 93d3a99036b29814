"""The published Python client as a load: threads with one call each in flight.

Speaks the harness's JSON lines (worker.ts): prepare, run, finish. Everything that is measured
happens inside felix-client; this file only keeps its threads busy and notes how long calls took.
"""

import json
import sys
import threading
import time

import felix


def percentile(ordered, fraction):
    if not ordered:
        return None
    return ordered[round((len(ordered) - 1) * fraction)]


class Load:
    def __init__(self, cell, target):
        self.cell = cell
        self.scope = (target["tenant"], target["namespace"])
        self.target = target
        self.payload = b"a" * cell["payloadBytes"]
        self.client = felix.Client(
            f"{target['hostname']}:{target['port']}",
            tenant_id=target["tenant"],
            token=target["token"],
            ca_file=target["caFile"],
        )
        if cell["operation"] == "cache-get":
            self.client.cache_put(*self.scope, target["cache"], "key-0000", self.payload)
        self.measure(0.3)

    def one_thread(self, until, took):
        client, payload, clock = self.client, self.payload, time.perf_counter
        tenant, namespace = self.scope
        if self.cell["operation"] == "publish":
            stream = self.target["stream"]
            call = lambda: client.publish(tenant, namespace, stream, payload)
        else:
            cache = self.target["cache"]
            call = lambda: client.cache_get(tenant, namespace, cache, "key-0000")
        started = clock()
        while started < until:
            call()
            ended = clock()
            took.append(ended - started)
            started = ended

    def measure(self, seconds):
        lists = [[] for _ in range(self.cell["threads"])]
        failures = []
        started = time.perf_counter()

        def body(took):
            try:
                self.one_thread(started + seconds, took)
            except felix.FelixError as error:
                failures.append(error)

        threads = [threading.Thread(target=body, args=(took,)) for took in lists]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        elapsed = time.perf_counter() - started
        if failures:
            raise failures[0]
        ordered = sorted(value for took in lists for value in took)
        p50, p99 = percentile(ordered, 0.5), percentile(ordered, 0.99)
        return {
            "completed": len(ordered),
            "expected": len(ordered),
            "elapsedMs": elapsed * 1000,
            "p50Ms": None if p50 is None else p50 * 1000,
            "p99Ms": None if p99 is None else p99 * 1000,
        }


def answer(value):
    print(json.dumps(value), flush=True)


def main():
    load = None
    answer({"ready": True})
    for line in sys.stdin:
        command = json.loads(line)
        try:
            if command["op"] == "prepare":
                load = Load(command["cell"], command["target"])
                answer({"ok": True})
            elif command["op"] == "run":
                answer(load.measure(load.cell["durationMs"] / 1000))
            else:
                load = None
                answer({"ok": True})
        except Exception as error:  # the harness voids the cell and says why
            answer({"error": f"{type(error).__name__}: {error}"})


main()
