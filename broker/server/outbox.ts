// What one stream still has to send: frames are appended to one buffer and leave in as few writes
// as possible, in the order they were appended. At rest it holds no buffer at all: buffers are
// borrowed from a pool that all streams of the process share, because an idle stream must cost
// next to nothing.

import { ByteWriter } from "@felix/wire";
import type { SendStream } from "@felix/transport";
import type { AnswerBudget } from "./answer_budget.ts";

/** A buffer that grew past this is not kept for reuse. */
const KEEP_BYTES = 256 * 1024;
const KEEP_WRITERS = 64;

/** Write buffers that are not in use. */
export class WriterPool {
  readonly #free: ByteWriter[] = [];

  /** An empty writer. */
  borrow(): ByteWriter {
    return this.#free.pop() ?? new ByteWriter(4096);
  }

  /** Takes a writer back; its bytes must be out. */
  give(writer: ByteWriter): void {
    if (writer.buffer.length > KEEP_BYTES || this.#free.length >= KEEP_WRITERS) return;
    writer.clear();
    this.#free.push(writer);
  }
}

/** The ordered output of one stream. */
export class Outbox {
  readonly #stream: SendStream;
  readonly #pool: WriterPool;
  readonly #budget: AnswerBudget;
  /** Bytes that the budget knows of. */
  #counted = 0;
  #next: ByteWriter | null = null;
  #writing: ByteWriter | null = null;
  #waiters: (() => void)[] | null = null;
  #broken = false;

  /** `budget` is shared by the streams of the connection. */
  constructor(stream: SendStream, pool: WriterPool, budget: AnswerBudget) {
    this.#stream = stream;
    this.#pool = pool;
    this.#budget = budget;
  }

  /** Where the next frame is appended. Call `flush` once everything of this turn is in. */
  get writer(): ByteWriter {
    return this.#next ??= this.#pool.borrow();
  }

  /** Whether the peer stopped reading or the connection is gone: nothing more will leave. */
  get broken(): boolean {
    return this.#broken;
  }

  /** Bytes appended and not yet taken by the transport. */
  get queuedBytes(): number {
    return (this.#next?.length ?? 0) + (this.#writing?.length ?? 0);
  }

  /** Starts a write of everything appended, unless one is under way: then it follows that one. */
  flush(): void {
    const out = this.#next;
    if (this.#writing !== null || out === null) return this.#account();
    this.#next = null;
    if (out.length === 0 || this.#broken) {
      this.#pool.give(out);
      this.#settled();
      return this.#account();
    }
    this.#writing = out;
    this.#account();
    this.#stream.write(out.written()).then(this.#onWritten, this.#onBroken);
  }

  /** Resolves once nothing is queued any more, written or lost. */
  drained(): Promise<void> {
    this.flush();
    if (this.#writing === null) return Promise.resolve();
    return new Promise((resolve) => (this.#waiters ??= []).push(resolve));
  }

  /** Sends what is queued, then ends the stream cleanly. Never rejects. */
  async finish(): Promise<void> {
    await this.drained();
    if (this.#broken) return;
    await this.#stream.finish().catch(() => {
      this.#broken = true;
    });
  }

  readonly #onWritten = (): void => {
    this.#pool.give(this.#writing!);
    this.#writing = null;
    if (this.#next !== null && this.#next.length > 0) this.flush();
    else this.#settled();
    this.#account();
  };

  readonly #onBroken = (): void => {
    this.#broken = true;
    this.#writing = null;
    this.#next = null;
    this.#settled();
    this.#account();
  };

  #account(): void {
    const queued = this.queuedBytes;
    if (queued === this.#counted) return;
    this.#budget.change(queued - this.#counted);
    this.#counted = queued;
  }

  #settled(): void {
    const waiters = this.#waiters;
    if (waiters === null) return;
    this.#waiters = null;
    for (const resolve of waiters) resolve();
  }
}
