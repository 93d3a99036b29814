// The event stream of one cache watch: first what the watch asked for of the past, then changes as
// they become visible, in as few writes as the bounds allow, and at the end why it ends: never a
// bare end, which a client takes for the end of the cache (spec/semantics.md §6.4).

import { encodeMessage } from "@felix/wire";
import type { ByteWriter, Message } from "@felix/wire";
import { StorageError } from "@felix/storage";
import type { CacheChange, CacheWatch } from "@felix/storage";
import type { SendStream } from "@felix/transport";
import type { Feed } from "./connection.ts";
import type { BrokerContext } from "./context.ts";
import { errorMessage } from "./refusal.ts";
import type { Deliverer } from "./turn.ts";

/** What the client of a watch is told beside the changes. */
export interface WatchStreamOptions {
  /** Id of the subscription. */
  readonly id: bigint;
  /** An `error` may carry code and retry class. */
  readonly readsCodes: boolean;
}

/** Writes the changes of one watch until either side ends it. */
export class WatchStream implements Deliverer, Feed {
  readonly #context: BrokerContext;
  readonly #stream: SendStream;
  readonly #watch: CacheWatch;
  readonly #options: WatchStreamOptions;
  readonly #onEnd: () => void;
  /** A write or read is under way, or delivery has not begun yet. */
  #busy = true;
  #ended = false;

  /** `onEnd` is called once, when nothing more will be sent. */
  constructor(
    context: BrokerContext,
    stream: SendStream,
    watch: CacheWatch,
    options: WatchStreamOptions,
    onEnd: () => void,
  ) {
    this.#context = context;
    this.#stream = stream;
    this.#watch = watch;
    this.#options = options;
    this.#onEnd = onEnd;
    watch.onReady = (): void => {
      if (!this.#busy) context.turn.deliverLater(this);
    };
  }

  /** Whether changes are on their way or queued. */
  get busy(): boolean {
    return !this.#ended && (this.#busy || this.#watch.queued > 0);
  }

  /** Writes the hello, which must come before anything else on the stream. Never rejects. */
  async hello(): Promise<void> {
    const out = this.#context.writers.borrow();
    encodeMessage({ type: "event_stream_hello", subscription_id: this.#options.id }, out);
    await this.#write(out);
  }

  /** Begins delivery; the answer to the request has been written. */
  start(): void {
    this.#busy = false;
    this.deliver();
  }

  /** Stops at once and gives the queue up. */
  abandon(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#watch.onReady = null;
    this.#watch.close();
    this.#onEnd();
  }

  /** Starts the next write, or fetches more of the past, or ends; one thing at a time. */
  deliver(): void {
    if (this.#busy || this.#ended) return;
    const watch = this.#watch;
    const out = this.#next();
    if (out !== null) this.#run(this.#write(out));
    else if (watch.ended) this.#end(this.#gone());
    else if (watch.missed !== null) {
      this.#context.metrics.cache.watchLagged++;
      this.#end({ type: "cache_watch_lagged", resume_from: BigInt(watch.missed) });
    } else if (watch.behind) this.#run(watch.fetch());
  }

  /** Goes on delivering when `work` is done; only reading the log makes it reject. */
  #run(work: Promise<void>): void {
    this.#busy = true;
    work.then(() => {
      this.#busy = false;
      this.deliver();
    }, (error) => this.#unreadable(error));
  }

  /** The frames of the next write; `null` when there is no change at hand. */
  #next(): ByteWriter | null {
    let change = this.#watch.take();
    if (change === undefined) return null;
    const out = this.#context.writers.borrow();
    const { subMaxBytesPerWrite } = this.#context.settings;
    for (; change !== undefined; change = this.#watch.take()) {
      encodeMessage(eventOf(change), out);
      if (out.length >= subMaxBytesPerWrite) break;
    }
    return out;
  }

  /** Never rejects. */
  async #write(out: ByteWriter): Promise<void> {
    try {
      await this.#stream.write(out.written());
      this.#context.writers.give(out);
    } catch {
      this.#context.metrics.subscribe.disconnects++;
      this.abandon();
    }
  }

  #gone(): Message {
    return errorMessage(
      { code: "not_found", message: "the cache was removed" },
      this.#options.readsCodes,
    );
  }

  #unreadable(error: unknown): void {
    if (this.#ended) return;
    if (this.#watch.ended) return void this.#end(this.#gone());
    this.#context.onStorageFailure("a cache's log cannot be read for a watch", error);
    const code = error instanceof StorageError ? error.code : "internal";
    const message = `the cache's log cannot be read: ${code}`;
    const { readsCodes } = this.#options;
    this.#end(errorMessage({ code: "storage", message, retry: "retry" }, readsCodes));
  }

  async #end(last: Message): Promise<void> {
    this.#busy = true;
    const out = this.#context.writers.borrow();
    encodeMessage(last, out);
    await this.#write(out);
    if (this.#ended) return;
    // The client may have stopped reading first; it knows nothing less for it.
    await this.#stream.finish().catch(() => {});
    this.abandon();
  }
}

function eventOf({ key, value, offset, expiresAtMs }: CacheChange): Message {
  return {
    type: "cache_event",
    key,
    ...(value === null ? {} : { value }),
    offset: BigInt(offset),
    expires_at_millis: BigInt(expiresAtMs),
  };
}
