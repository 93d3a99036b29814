"""Drives the published Python client on behalf of the Deno test.

One JSON object a line on stdin: {"id", "op", ...arguments}. One a line on stdout for each:
{"id", "result"} or {"id", "error": {"type", "message", "code", "retry", "detail"}}. Bytes travel as
base64. Every command runs in a thread of its own, so calls that block do not hold up others.
"""

import base64
import json
import sys
import threading
import time

import felix

clients = {}
readers = {}
write_lock = threading.Lock()


def to_text(data):
    return None if data is None else base64.b64encode(data).decode()


def to_bytes(text):
    return None if text is None else base64.b64decode(text)


def event(item):
    if item is None:
        return None
    return {
        "payload": to_text(item.payload),
        "offset": item.offset,
        "stream": item.stream,
        "skipped_before": item.skipped_before,
    }


def sharded(item):
    if item is None:
        return None
    kind = type(item).__name__
    if kind == "ShardRecord":
        return {"kind": kind, "shard": item.shard, "event": event(item.event)}
    return {"kind": kind, "shard": item.shard}


def connect(a):
    clients[a["client"]] = felix.Client(
        a["address"],
        tenant_id=a["tenant"],
        token=a["token"],
        ca_file=a["ca_file"],
        server_name=a.get("server_name", "localhost"),
    )
    return {"endpoints": clients[a["client"]].endpoints()}


def publish(a):
    return clients[a["client"]].publish(
        *a["scope"], to_bytes(a["payload"]), key=to_bytes(a.get("key")), ack=a.get("ack", "per_message")
    )


def publish_many(a):
    """`threads` threads publish `each` records "thread:number", all acknowledged."""
    client, scope, failures = clients[a["client"]], a["scope"], []

    def body(thread):
        try:
            for number in range(a["each"]):
                client.publish(*scope, f"{thread}:{number}".encode())
        except felix.FelixError as error:
            failures.append(f"{type(error).__name__}: {error}")

    threads = [threading.Thread(target=body, args=(n,)) for n in range(a["threads"])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {"failures": failures}


def cache_many(a):
    """`threads` threads put, read back and delete `each` keys of their own."""
    client, scope, failures = clients[a["client"]], a["scope"], []

    def body(thread):
        try:
            for number in range(a["each"]):
                key, value = f"{thread}-{number}", f"{thread}={number}".encode()
                client.cache_put(*scope, key, value)
                if client.cache_get(*scope, key) != value:
                    failures.append(f"read of {key}")
                if client.cache_delete(*scope, key) != value:
                    failures.append(f"delete of {key}")
        except felix.FelixError as error:
            failures.append(f"{type(error).__name__}: {error}")

    threads = [threading.Thread(target=body, args=(n,)) for n in range(a["threads"])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {"failures": failures}


def subscribe(a):
    client, scope, start = clients[a["client"]], a["scope"], a.get("start")
    if a.get("sharded"):
        readers[a["reader"]] = client.subscribe_sharded(*scope, start=start)
        return {"shards": readers[a["reader"]].shards}
    readers[a["reader"]] = client.subscribe(*scope, start=start)
    return {}


def next_event(a):
    return event(readers[a["reader"]].next_event(timeout=a.get("timeout", 5.0)))


def next_sharded(a):
    return sharded(readers[a["reader"]].next_event(timeout=a.get("timeout", 5.0)))


def watch_cache(a):
    """Watches `key` or `prefix`; `next_change` reads it."""
    kind = "key" if "key" in a else "prefix"
    readers[a["reader"]] = watch = clients[a["client"]].watch_cache(
        *a["scope"],
        getattr(felix.CacheWatchFilter, kind)(a[kind]),
        start=a.get("start"),
        retained=a.get("retained", False),
    )
    return {
        "resume_offset": watch.resume_offset,
        "resnapshot": watch.resnapshot,
        "retained_count": watch.retained_count,
    }


def next_change(a):
    item = readers[a["reader"]].recv(timeout=a.get("timeout", 5.0))
    if isinstance(item, felix.CacheChange):
        return {"key": item.key, "value": to_text(item.value), "offset": item.offset}
    return None if item is None else {"kind": type(item).__name__, "resume_from": item.resume_from}


def close_reader(a):
    readers.pop(a["reader"]).close()


def close_client(a):
    del clients[a["client"]]


COMMANDS = {
    "connect": connect,
    "publish": publish,
    "publish_many": publish_many,
    "cache_many": cache_many,
    "subscribe": subscribe,
    "next_event": next_event,
    "next_sharded": next_sharded,
    "watch_cache": watch_cache,
    "next_change": next_change,
    "close_reader": close_reader,
    "close_client": close_client,
    "stream_shards": lambda a: clients[a["client"]].stream_shards(*a["scope"]),
    "cache_put": lambda a: clients[a["client"]].cache_put(
        *a["scope"], a["key"], to_bytes(a["value"]), ttl=a.get("ttl")
    ),
    "cache_get": lambda a: to_text(clients[a["client"]].cache_get(*a["scope"], a["key"])),
    "cache_delete": lambda a: to_text(clients[a["client"]].cache_delete(*a["scope"], a["key"])),
    "counter_add": lambda a: clients[a["client"]].counter_add(*a["scope"], a["key"], a["delta"]),
    "counter_get": lambda a: clients[a["client"]].counter_get(*a["scope"], a["key"]),
    "group_poll": lambda a: len(
        clients[a["client"]].group_poll(*a["scope"], a["shard"], a["group"], wait=0.1)
    ),
    "publish_zeros": lambda a: clients[a["client"]].publish(*a["scope"], bytes(a["length"])),
    "publish_at_least_once": lambda a: clients[a["client"]].publish(
        *a["scope"], to_bytes(a["payload"]), at_least_once=True
    ),
    "version": lambda a: felix.__version__,
}


def serve(command):
    try:
        answer = {"id": command["id"], "result": COMMANDS[command["op"]](command)}
    except Exception as error:  # every failure is the test's to judge
        facts = {name: getattr(error, name, None) for name in ("code", "retry", "detail")}
        answer = {
            "id": command["id"],
            "error": {"type": type(error).__name__, "message": str(error), **facts},
        }
    with write_lock:
        print(json.dumps(answer), flush=True)


for line in sys.stdin:
    threading.Thread(target=serve, args=(json.loads(line),), daemon=True).start()
time.sleep(0.05)
