// One authenticated stream in both directions: frames are appended to one buffer and leave in as
// few writes as possible; frames that arrive are handed to the channel's user as they lie in the
// read buffer. The rule: the cost is per read and per write, so everything appended in one turn
// leaves in one write, and what is appended while a write is under way leaves in the next.

import { assertKnownFlags, ByteWriter, FrameReader } from "@felix/wire";
import type { ByteStream } from "@felix/transport";
import { ProtocolError } from "../failure/classes.ts";
import { FelixError } from "../failure/felix_error.ts";
import type { Negotiated } from "../features.ts";
import { backgroundTimeout } from "../runtime/deno.ts";

/** A write buffer that grew past this is not kept. */
const KEEP_BYTES = 256 * 1024;
/** How long a reader may still find out why a write was refused. */
const STOP_GRACE_MS = 250;

/** What uses a channel. */
export interface ChannelUser {
  /** One frame; `payload` is valid until this returns. Throwing breaks the channel. */
  onFrame(flags: number, payload: Uint8Array): void;
  /** Everything appended so far is being handed to the transport. */
  onFlush?(): void;
  /** What was being handed over has been taken. */
  onFlushed?(): void;
  /** Called once: `null` at the peer's clean end, else why it broke. */
  onEnd(cause: unknown): void;
}

const NOBODY: ChannelUser = {
  onFrame: () => {
    throw new ProtocolError({ message: "a frame that nobody asked for", operation: "read" });
  },
  onEnd: () => undefined,
};

/** An open stream in both directions. */
export class Channel {
  /** What the broker said in `auth_ok`; set once authenticated. */
  negotiated: Negotiated | null = null;
  /** Address of the broker. */
  readonly broker: string;
  /** Call when it gave no proper answer: its connection takes nothing new from then on. */
  readonly distrust: () => void;
  /** Resolves once it has ended. */
  readonly whenEnded: Promise<void>;
  readonly #stream: ByteStream;
  readonly #reader: FrameReader;
  readonly #closed: (channel: Channel) => void;
  #user: ChannelUser = NOBODY;
  #filling = new ByteWriter(1024);
  #writing: ByteWriter | null = null;
  #spare: ByteWriter | null = null;
  #scheduled = false;
  #ended = false;
  #finishing = false;
  #stopGrace: (() => void) | null = null;
  #drained: (() => void)[] = [];
  #resolveEnded!: () => void;

  /** Takes over a stream; `closed` is told once when it has ended. */
  constructor(
    stream: ByteStream,
    options: {
      broker: string;
      maxFrameBytes: number;
      distrust: () => void;
      closed: (channel: Channel) => void;
    },
  ) {
    this.#stream = stream;
    this.broker = options.broker;
    this.distrust = options.distrust;
    this.#closed = options.closed;
    this.whenEnded = new Promise((resolve) => this.#resolveEnded = resolve);
    this.#reader = new FrameReader({ maxPayloadBytes: options.maxFrameBytes });
  }

  /** Starts reading for `user`. */
  start(user: ChannelUser): void {
    this.#user = user;
    void this.#read();
  }

  /** Hands the channel to another user. */
  set user(user: ChannelUser) {
    this.#user = user;
  }

  /** Whether it has ended. */
  get ended(): boolean {
    return this.#ended;
  }

  /** Whether frames may still be appended. */
  get writable(): boolean {
    return !this.#ended && !this.#finishing && this.#stopGrace === null;
  }

  /** Where the next frame is appended; call `flushSoon` afterwards. */
  get out(): ByteWriter {
    return this.#filling;
  }

  /** Bytes appended that the transport has not taken. */
  get queuedBytes(): number {
    return this.#filling.length + (this.#writing?.length ?? 0);
  }

  /** Lets everything appended in this turn leave in one write. */
  flushSoon(): void {
    if (this.#scheduled || this.#writing !== null) return;
    this.#scheduled = true;
    queueMicrotask(this.#flushNow);
  }

  /** Resolves once the transport has taken everything appended, or the channel has ended. */
  drained(): Promise<void> {
    if (this.#ended || this.queuedBytes === 0) return Promise.resolve();
    this.flushSoon();
    return new Promise((resolve) => this.#drained.push(resolve));
  }

  /** Ends our side cleanly after everything appended; reading goes on. Never rejects. */
  async finish(): Promise<void> {
    if (this.#finishing) return;
    this.#finishing = true;
    await this.drained();
    if (!this.#ended) await this.#stream.finish().catch((error) => this.#end(error));
  }

  /** Ends both sides at once; the user is told `cause`. */
  abandon(cause: unknown): void {
    if (this.#ended) return;
    this.#stream.cancel();
    this.#stream.reset(0);
    this.#end(cause);
  }

  readonly #flushNow = (): void => {
    this.#scheduled = false;
    if (this.#writing === null) this.#flush();
  };

  #flush(): void {
    const out = this.#filling;
    if (this.#ended || this.#stopGrace !== null || out.length === 0) return;
    this.#filling = this.#spare ?? new ByteWriter(1024);
    this.#spare = null;
    this.#writing = out;
    this.#user.onFlush?.();
    this.#stream.write(out.written()).then(this.#onWritten, this.#onBroken);
  }

  readonly #onWritten = (): void => {
    const out = this.#writing;
    this.#writing = null;
    if (out !== null && out.buffer.length <= KEEP_BYTES) {
      out.clear();
      this.#spare = out;
    }
    if (this.#ended) return;
    this.#user.onFlushed?.();
    if (this.#filling.length > 0) this.#flush();
    else this.#settleDrained();
  };

  readonly #onBroken = (error: unknown): void => {
    this.#writing = null;
    if (this.#ended) return;
    // A broker that stops reading has usually said why: leave the reader a moment to find it.
    this.#stopGrace = backgroundTimeout(() => this.#end(error), STOP_GRACE_MS);
  };

  async #read(): Promise<void> {
    const reader = this.#reader;
    try {
      while (!this.#ended) {
        const view = await this.#stream.read(reader.space());
        if (view === null) return this.#end(null);
        reader.filled(view);
        for (let frame = reader.next(); frame !== null; frame = reader.next()) {
          assertKnownFlags(frame.flags);
          this.#user.onFrame(frame.flags, frame.payload);
          if (this.#ended) return;
        }
      }
    } catch (error) {
      this.#broke(error);
    }
  }

  #broke(error: unknown): void {
    if (this.#ended) return;
    const fromTransport = error instanceof Error && error.name === "TransportError";
    if (fromTransport) return this.#end(error);
    this.abandon(
      error instanceof FelixError ? error : new ProtocolError({
        message: `unreadable answer: ${error instanceof Error ? error.message : String(error)}`,
        operation: "read",
        broker: this.broker,
        cause: error,
      }),
    );
  }

  #end(cause: unknown): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#stopGrace?.();
    if (cause === null && !this.#finishing) {
      this.#finishing = true;
      this.#stream.finish().catch(() => undefined);
    }
    this.#closed(this);
    this.#user.onEnd(cause);
    this.#resolveEnded();
    this.#settleDrained();
  }

  #settleDrained(): void {
    const waiting = this.#drained;
    if (waiting.length === 0) return;
    this.#drained = [];
    for (const resolve of waiting) resolve();
  }
}
