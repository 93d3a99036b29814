// Requests to a cache that is kept on logs: those of one stream take effect in the order in which
// they came, a read between the writes before and behind it, and are answered in that order. An
// error is never told as a miss, and no ack comes before the record is kept (spec/semantics.md
// §6.1, §7).

import { encodeMessage, FEATURE_CACHE_CONDITIONAL } from "@felix/wire";
import type {
  CacheDeleteIfMessage,
  CacheDeleteMessage,
  CacheGetMessage,
  CachePutIfMessage,
  CachePutMessage,
  CounterAddMessage,
  CounterGetMessage,
  Message,
} from "@felix/wire";
import { StorageError } from "@felix/storage";
import type { CacheLog, CounterLog, WriteResult } from "@felix/storage";
import type { BrokerContext } from "./context.ts";
import { offers } from "./negotiation.ts";
import type { Peer } from "./negotiation.ts";
import type { OrderedAnswers } from "./ordered_answers.ts";
import type { Outbox } from "./outbox.ts";
import { encodeError } from "./refusal.ts";
import type { Refusal } from "./refusal.ts";

/** What an owed answer counts beside its value. */
const ANSWER_BYTES = 256;

/** A request that a cache on logs serves. */
export type LogCacheRequest =
  | CacheGetMessage
  | CachePutMessage
  | CacheDeleteMessage
  | CachePutIfMessage
  | CacheDeleteIfMessage
  | CounterAddMessage
  | CounterGetMessage;

/** A value that is at hand. */
export interface QuickValue {
  readonly value: Uint8Array | null;
  /** For a client that is told. */
  readonly version: number | null;
}

/** What opens the counters that a request is about. */
export type OpenCounters = () => Promise<CounterLog>;

/** Serves one client stream. */
export class LogCacheRequests {
  readonly #context: BrokerContext;
  readonly #peer: Peer;
  readonly #outbox: Outbox;
  readonly #answers: OrderedAnswers;
  /** Whether values are told with their versions. */
  readonly #versions: boolean;

  constructor(
    context: BrokerContext,
    peer: Peer,
    outbox: Outbox,
    answers: OrderedAnswers,
  ) {
    this.#context = context;
    this.#peer = peer;
    this.#outbox = outbox;
    this.#answers = answers;
    this.#versions = offers(peer, FEATURE_CACHE_CONDITIONAL);
  }

  /**
   * The value of a key when it can be told at once: nothing is owed and it is in memory, or there
   * is none. `undefined`: it takes a place in the order.
   */
  quickValue(log: CacheLog, key: string): QuickValue | undefined {
    if (this.#answers.owed > 0) return undefined;
    const entry = log.find(key, this.#context.wallMs());
    if (entry !== null && entry.value === null) return undefined;
    const value = entry === null ? null : log.valueOf(entry) as Uint8Array;
    this.#countGet(value);
    return { value, version: this.#versions ? entry?.version ?? null : null };
  }

  /** Stores a value without an end, and answers `cache_ok` with `requestId`. */
  put(log: CacheLog, key: string, value: Uint8Array, requestId: bigint | undefined): void {
    this.#put(log, key, value, null, requestId);
  }

  /** Serves one request, which is about the shard on `log`. */
  serve(request: LogCacheRequest, log: CacheLog, counters: OpenCounters): void {
    const now = this.#context.wallMs();
    switch (request.type) {
      case "cache_get":
        return this.#get(log, request);
      case "cache_put": {
        const ttlMs = request.ttl_ms === null ? null : Number(request.ttl_ms);
        return this.#put(log, request.key, request.value, ttlMs, request.request_id);
      }
      case "cache_delete":
        this.#context.metrics.cache.deletes++;
        return this.#add("cache delete", ANSWER_BYTES, log.delete(request.key, now), (value) => {
          this.#value(request, value, null);
        });
      case "cache_put_if": {
        const { key, value, ttl_ms, condition, request_id } = request;
        this.#context.metrics.cache.puts++;
        const when = condition === "absent" ? condition : { version: Number(condition.version) };
        const ttlMs = ttl_ms === undefined ? null : Number(ttl_ms);
        const write = log.putIf(key, value, ttlMs, when, now);
        return this.#conditional("cache put", value.length, write, request_id);
      }
      case "cache_delete_if": {
        const { key, version, request_id } = request;
        this.#context.metrics.cache.deletes++;
        const write = log.deleteIf(key, Number(version), now);
        return this.#conditional("cache delete", 0, write, request_id);
      }
      case "counter_add":
        this.#context.metrics.cache.counterAdds++;
        return this.#add("counter add", ANSWER_BYTES, this.#addTo(counters, request), (sum) => {
          if (sum !== null) return this.#send(counterValue(request.request_id, sum));
          const message = "counter add not served: the sum would leave 64 bits";
          this.#fail({ code: "invalid_request", message });
        });
      case "counter_get":
        this.#context.metrics.cache.counterGets++;
        return this.#add("counter get", ANSWER_BYTES, this.#sumOf(counters, request), (sum) => {
          this.#send(counterValue(request.request_id, sum));
        });
    }
  }

  #put(
    log: CacheLog,
    key: string,
    value: Uint8Array,
    ttlMs: number | null,
    requestId: bigint | undefined,
  ): void {
    this.#context.metrics.cache.puts++;
    const write = log.put(key, value, ttlMs, this.#context.wallMs());
    this.#add("cache put", ANSWER_BYTES + value.length, write, () => {
      const answer: Message = requestId === undefined
        ? { type: "ok" }
        : { type: "cache_ok", request_id: requestId };
      this.#send(answer);
    });
  }

  #conditional(
    operation: string,
    bytes: number,
    write: Promise<WriteResult>,
    requestId: bigint,
  ): void {
    this.#add(operation, ANSWER_BYTES + bytes, write, ({ applied, version }) => {
      this.#send({
        type: "cache_condition_result",
        applied,
        ...(version === null ? {} : { version: BigInt(version) }),
        request_id: requestId,
      });
    });
  }

  #get(log: CacheLog, request: CacheGetMessage): void {
    const now = this.#context.wallMs();
    const { key } = request;
    // With nothing owed there is no write of this stream to wait for.
    const read = this.#answers.owed === 0 ? log.get(key, now) : log.getInOrder(key, now);
    this.#add("cache get", ANSWER_BYTES, read, (found) => {
      this.#countGet(found?.value ?? null);
      const version = this.#versions ? found?.version ?? null : null;
      this.#value(request, found?.value ?? null, version);
    });
  }

  async #addTo(counters: OpenCounters, request: CounterAddMessage): Promise<bigint | null> {
    return await (await counters()).add(request.key, request.delta);
  }

  async #sumOf(counters: OpenCounters, request: CounterGetMessage): Promise<bigint | null> {
    return await (await counters()).getInOrder(request.key);
  }

  #add<Result>(
    operation: string,
    bytes: number,
    work: Promise<Result>,
    answer: (result: Result) => void,
  ): void {
    const given = work.then(
      (result) => () => answer(result),
      (error) => this.#failure(operation, error),
    );
    this.#answers.add(bytes, given);
  }

  #countGet(value: Uint8Array | null): void {
    const { cache } = this.#context.metrics;
    cache.gets++;
    if (value === null) cache.misses++;
    else cache.hits++;
  }

  #value(
    request: CacheGetMessage | CacheDeleteMessage,
    value: Uint8Array | null,
    version: number | null,
  ): void {
    const { tenant_id, namespace, cache, key, request_id } = request;
    this.#send({
      type: "cache_value",
      tenant_id,
      namespace,
      cache,
      key,
      value,
      ...(request_id === undefined ? {} : { request_id }),
      ...(version === null ? {} : { version: BigInt(version) }),
    });
  }

  #send(message: Message): void {
    encodeMessage(message, this.#outbox.writer);
  }

  /** The message of a storage error names files and is for the operator. */
  #failure(operation: string, error: unknown): () => void {
    this.#context.onStorageFailure(`${operation} failed`, error);
    const code = error instanceof StorageError ? error.code : "internal";
    if (code === "internal") {
      const message = `${operation} not served: internal error`;
      return () => this.#fail({ code, message });
    }
    // A failed flush leaves it open whether the record is there; everything else wrote nothing.
    const unsure = code === "sync_failed";
    const message = unsure
      ? `${operation} not served: whether it is kept is known after a restart`
      : `${operation} not served: the log refused it: ${code}`;
    return () => this.#fail({ code: "storage", message, ...(unsure ? {} : { retry: "retry" }) });
  }

  #fail(refusal: Refusal): void {
    this.#context.metrics.cache.failed++;
    encodeError(refusal, this.#peer.readsCodes, this.#outbox.writer);
  }
}

function counterValue(requestId: bigint, sum: bigint | null): Message {
  return { type: "counter_value", request_id: requestId, ...(sum === null ? {} : { value: sum }) };
}
