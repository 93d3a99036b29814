// Requests to a cache that is kept on logs: writes of one stream go to the log in the order in
// which they came, reads see every write before them on the same stream, and answers leave in the
// order of the requests. An error is never told as a miss, and no ack comes before the record is
// kept (spec/semantics.md §6.1, §7).

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
  quickValue(log: CacheLog, key: string): Uint8Array | null | undefined {
    if (this.#answers.owed > 0 || this.#versions) return undefined;
    const entry = log.find(key, this.#context.wallMs());
    if (entry !== null && entry.value === null) return undefined;
    const value = entry === null ? null : log.valueOf(entry) as Uint8Array;
    this.#countGet(value);
    return value;
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
        return this.#answers.addInTurn(ANSWER_BYTES, () => this.#get(log, request));
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
        return this.#answers.addInTurn(ANSWER_BYTES, () => this.#counter(counters, request));
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

  async #get(log: CacheLog, request: CacheGetMessage): Promise<() => void> {
    const now = this.#context.wallMs();
    try {
      const found = await log.get(request.key, now);
      const value = found?.value ?? null;
      this.#countGet(value);
      const version = this.#versions ? found?.version ?? null : null;
      return () => this.#value(request, value, version);
    } catch (error) {
      return this.#failure("cache get", error);
    }
  }

  async #addTo(counters: OpenCounters, request: CounterAddMessage): Promise<bigint | null> {
    return await (await counters()).add(request.key, request.delta);
  }

  async #counter(counters: OpenCounters, request: CounterGetMessage): Promise<() => void> {
    try {
      const sum = (await counters()).get(request.key);
      return () => this.#send(counterValue(request.request_id, sum));
    } catch (error) {
      return this.#failure("counter get", error);
    }
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
