// The streams of one quiche connection by id: which exist, who waits to open or to be given one.
// Rule: an id above the highest seen of its kind is a stream that the peer has just opened, any
// other unknown id is one that both sides are done with.

import type { TransportError } from "../transport.ts";
import { QuicheStream, type StreamOwner } from "./quiche_stream.ts";

interface Opening {
  resolve(stream: QuicheStream): void;
  reject(error: TransportError): void;
}

/** One direction of opening: streams of one kind (in both directions, or one-way). */
interface Kind {
  readonly bidirectional: boolean;
  nextLocalId: number;
  nextPeerId: number;
  readonly opening: Opening[];
  readonly arrived: QuicheStream[];
  readonly accepting: ((stream: QuicheStream | null) => void)[];
}

const DEFAULT_URGENCY = 127;
const REAP_BYTES = new Uint8Array(1);

/** Streams of one connection. */
export class StreamTable {
  readonly #owner: StreamOwner;
  readonly #live = new Map<number, QuicheStream>();
  readonly #kinds: readonly [Kind, Kind];
  /** Reset by the peer and done with here; quiche drops them once asked again. */
  readonly #reap = new Set<number>();

  constructor(owner: StreamOwner, isServer: boolean) {
    this.#owner = owner;
    // RFC 9000 §2.1: bit 0 says who opened it, bit 1 whether it is one-way.
    const local = isServer ? 1 : 0;
    this.#kinds = [kind(true, local, 1 - local), kind(false, local + 2, 3 - local)];
  }

  /** The stream `id`, which may be new; `null` where it is past. */
  get(id: number): QuicheStream | null {
    const known = this.#live.get(id);
    if (known !== undefined) return known;
    const kind = this.#kinds[(id & 2) === 0 ? 0 : 1];
    if (id < kind.nextPeerId || ((id ^ kind.nextPeerId) & 1) !== 0) return null;
    // Opening a stream opens all lower ones of its kind (RFC 9000 §3.2).
    let stream: QuicheStream;
    do {
      stream = new QuicheStream(this.#owner, kind.nextPeerId, true, kind.bidirectional);
      this.#live.set(kind.nextPeerId, stream);
      const waiting = kind.accepting.shift();
      if (waiting === undefined) kind.arrived.push(stream);
      else waiting(stream);
      kind.nextPeerId += 4;
    } while (stream.id < id);
    return stream;
  }

  /** The next stream of the kind that the peer opens; `null` once the connection has ended. */
  accept(bidirectional: boolean): Promise<QuicheStream | null> {
    const kind = this.#kinds[bidirectional ? 0 : 1];
    const stream = kind.arrived.shift();
    if (stream !== undefined) return Promise.resolve(stream);
    return new Promise((resolve) => kind.accepting.push(resolve));
  }

  /** Opens a stream as soon as the peer's limit allows it, in the order of the calls. */
  open(bidirectional: boolean): Promise<QuicheStream> {
    const kind = this.#kinds[bidirectional ? 0 : 1];
    return new Promise((resolve, reject) => {
      kind.opening.push({ resolve, reject });
      this.#serveOpening(kind);
    });
  }

  /** Opens what may be opened now and lets go of what can go. */
  serve(): void {
    for (const kind of this.#kinds) this.#serveOpening(kind);
    for (const id of this.#reap) this.#tryReap(id);
  }

  /** Drops `stream`, of which both halves have ended. */
  forget(stream: QuicheStream): void {
    if (this.#live.delete(stream.id) && stream.wasReset) this.#reap.add(stream.id);
  }

  /** The connection has ended. */
  end(failure: TransportError): void {
    for (const stream of this.#live.values()) stream.onConnectionEnd(failure);
    this.#live.clear();
    this.#reap.clear();
    for (const kind of this.#kinds) {
      for (const resolve of kind.accepting) resolve(null);
      for (const opening of kind.opening) opening.reject(failure);
      kind.accepting.length = kind.opening.length = kind.arrived.length = 0;
    }
  }

  #serveOpening(kind: Kind): void {
    while (kind.opening.length > 0 && this.#peerAllows(kind)) {
      const id = kind.nextLocalId;
      // Naming a priority is what makes the stream exist, and count, before its first byte.
      this.#owner.quic.streamPriority(id, DEFAULT_URGENCY, true);
      kind.nextLocalId += 4;
      const stream = new QuicheStream(this.#owner, id, kind.bidirectional, true);
      this.#live.set(id, stream);
      kind.opening.shift()!.resolve(stream);
    }
  }

  #peerAllows(kind: Kind): boolean {
    const { quic } = this.#owner;
    return (kind.bidirectional ? quic.peerStreamsLeftBidi() : quic.peerStreamsLeftUni()) > 0;
  }

  #tryReap(id: number): void {
    try {
      this.#owner.quic.streamRecv(id, REAP_BYTES);
    } catch (error) {
      if (error instanceof Error && error.message.startsWith("StreamReset")) return; // not yet
      this.#reap.delete(id);
    }
  }
}

function kind(bidirectional: boolean, nextLocalId: number, nextPeerId: number): Kind {
  return { bidirectional, nextLocalId, nextPeerId, opening: [], arrived: [], accepting: [] };
}
