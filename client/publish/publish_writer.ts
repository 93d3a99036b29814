// One stream that carries publishes. The rule: frames leave in the order they were given, at most
// the granted window of acked ones is unanswered, and when the stream ends every frame that was
// appended has an unknown outcome, every other one goes back to its lane (spec/client.md §5.2).

import { encodeMessage } from "@felix/wire";
import { Deque } from "../deque.ts";
import { ConnectionError, ProtocolError } from "../failure/classes.ts";
import { serves } from "../features.ts";
import type { Channel, ChannelUser } from "../link/channel.ts";
import type { Link } from "../link/link.ts";
import { monotonicMs } from "../runtime/deno.ts";
import type { PublishCall } from "./publish_call.ts";
import type { PublishLane } from "./publish_lane.ts";
import { readAnswer } from "./publish_answer.ts";
import type { PublishAnswer } from "./publish_answer.ts";
import { appendPublish } from "./publish_frame.ts";
import type { StreamScope } from "./stream_scope.ts";

/** Bytes appended and not yet taken from which further frames wait. */
const HIGH_WATER_BYTES = 128 * 1024;

/** Unanswered publishes: of one stream, or of all streams of a connection. */
export interface Window {
  used: number;
  readonly limit: number;
  /** Tells the streams that share it that there is room. */
  readonly pumps: Set<() => void>;
}

/** What a writer reports. */
export interface WriterHost {
  /** An acked frame was answered, or an unacked one accepted (`answer` is `null`). */
  answered(call: PublishCall, answer: PublishAnswer | null, writer: PublishWriter): void;
  /** The outcome of a frame is unknown. */
  lost(call: PublishCall, cause: unknown, writer: PublishWriter): void;
  /** The transport has taken unacked frames. */
  unackedTaken(bytes: number): void;
  /** Unacked frames were not taken before the stream ended. */
  unackedLost(broker: string, frames: number, bytes: number): void;
  /** The stream has ended. */
  ended(writer: PublishWriter): void;
  /** Milliseconds after which an unanswered frame means that the stream is stuck. */
  readonly stallMs: number;
}

/** One stream that carries publishes. */
export class PublishWriter implements ChannelUser {
  /** Address of its broker. */
  readonly broker: string;
  /** Lanes that use it. */
  readonly lanes: Set<PublishLane> = new Set();
  readonly #host: WriterHost;
  readonly #link: Link;
  readonly #channel: Channel;
  readonly #window: Window;
  readonly #declaresWidth: boolean;
  readonly #declared = new Map<StreamScope, number>();
  readonly #queue: Deque<PublishCall> = new Deque();
  readonly #pending = new Map<number, PublishCall>();
  readonly #pump = (): void => this.#sendQueued();
  #nextId = 1;
  #unacked = { frames: 0, bytes: 0 };
  #unackedWriting = { frames: 0, bytes: 0 };

  /** Takes over an authenticated channel. */
  constructor(host: WriterHost, link: Link, channel: Channel, window: Window) {
    this.#host = host;
    this.#link = link;
    this.#channel = channel;
    this.#window = window;
    this.broker = channel.broker;
    this.#declaresWidth = serves(channel.negotiated!, "publishWidth");
    window.pumps.add(this.#pump);
    channel.user = this;
  }

  /** Whether new calls may be given to it. */
  get usable(): boolean {
    return this.#channel.writable && this.#link.open;
  }

  /** Sends a call now or when there is room. */
  send(call: PublishCall): void {
    if (this.#queue.size === 0 && this.#hasRoom(call)) this.#append(call);
    else this.#queue.push(call);
  }

  /** Resolves once the transport has taken everything appended. */
  drained(): Promise<void> {
    return this.#channel.drained();
  }

  /** Ends the stream; what is unanswered is lost. */
  close(cause: unknown): void {
    this.#channel.abandon(cause);
  }

  /** Ends our side; resolves once the broker has ended its own, so it has read everything. */
  async finish(): Promise<void> {
    await this.#channel.finish();
    await this.#channel.whenEnded;
  }

  /** Ends calls whose time is over, and the stream when it is stuck. */
  sweep(nowMs: number): void {
    for (const call of this.#queue) call.expire(nowMs);
    for (const call of this.#pending.values()) {
      if (nowMs - call.sentMs < this.#host.stallMs) {
        call.expire(nowMs);
        continue;
      }
      this.#channel.distrust();
      this.#channel.abandon(
        new ConnectionError("request", {
          message: `a publish was not answered within ${this.#host.stallMs} ms`,
          operation: call.operation,
          broker: this.broker,
        }),
      );
      return;
    }
  }

  onFrame(flags: number, payload: Uint8Array): void {
    const answer = readAnswer(flags, payload, this.broker);
    const call = this.#pending.get(answer.id);
    if (call === undefined) {
      throw new ProtocolError({
        message: `an answer to publish ${answer.id}, which was not asked`,
        operation: "publish",
        broker: this.broker,
      });
    }
    this.#pending.delete(answer.id);
    this.#window.used--;
    if (call.state === "sent") this.#host.answered(call, answer, this);
    call.lane!.released();
    if (answer.refusal !== undefined) this.#judgeRefusal(answer.refusal.code);
    for (const pump of this.#window.pumps) pump();
  }

  onFlush(): void {
    const { frames, bytes } = this.#unacked;
    if (frames === 0) return;
    this.#unackedWriting = { frames, bytes };
    this.#unacked = { frames: 0, bytes: 0 };
  }

  onFlushed(): void {
    const { frames, bytes } = this.#unackedWriting;
    if (frames > 0) {
      this.#unackedWriting = { frames: 0, bytes: 0 };
      this.#host.unackedTaken(bytes);
    }
    if (this.#queue.size > 0) this.#sendQueued();
  }

  onEnd(cause: unknown): void {
    this.#window.pumps.delete(this.#pump);
    const owed = [...this.#pending.values()];
    this.#pending.clear();
    this.#window.used -= owed.length;
    if (owed.length > 0 || this.#queue.size > 0) this.#channel.distrust();
    this.#host.ended(this);
    for (const lane of this.lanes) lane.writerEnded(this);
    const frames = this.#unacked.frames + this.#unackedWriting.frames;
    if (frames > 0) {
      const bytes = this.#unacked.bytes + this.#unackedWriting.bytes;
      this.#host.unackedLost(this.broker, frames, bytes);
    }
    const unsent = new Map<PublishLane, PublishCall[]>();
    for (const call of this.#queue.takeAll()) {
      const calls = unsent.get(call.lane!);
      if (calls === undefined) unsent.set(call.lane!, [call]);
      else calls.push(call);
    }
    for (const call of owed) {
      if (call.state === "sent") this.#host.lost(call, cause, this);
      call.lane!.released();
    }
    for (const [lane, calls] of unsent) lane.requeue(calls);
    for (const pump of this.#window.pumps) pump();
  }

  /** Without a code nothing proves that the broker is well (spec/client.md §12.5). */
  #judgeRefusal(code: string | undefined): void {
    if (code === undefined || code === "draining") this.#channel.distrust();
  }

  #hasRoom(call: PublishCall): boolean {
    return this.#channel.writable && this.#channel.queuedBytes < HIGH_WATER_BYTES &&
      (call.ack === 0 || this.#window.used < this.#window.limit);
  }

  #sendQueued(): void {
    for (let call = this.#queue.peek(); call !== undefined; call = this.#queue.peek()) {
      if (call.state === "done") {
        this.#queue.shift();
        call.lane!.released();
        continue;
      }
      if (!this.#hasRoom(call)) return;
      this.#queue.shift();
      this.#append(call);
    }
  }

  #append(call: PublishCall): void {
    const channel = this.#channel;
    call.attempts++;
    call.state = "sent";
    if (this.#declaresWidth && call.key !== null) this.#declareWidth(call.scope);
    if (call.ack === 0) {
      appendPublish(channel.out, call, 0);
      this.#unacked.frames++;
      this.#unacked.bytes += call.budgetBytes;
      call.holdsBytes = false;
      channel.flushSoon();
      this.#host.answered(call, null, this);
      call.lane!.released();
      return;
    }
    const id = this.#nextId++;
    call.sentMs = call.attempts === 1 ? call.startedMs : monotonicMs();
    this.#window.used++;
    this.#pending.set(id, call);
    appendPublish(channel.out, call, id);
    channel.flushSoon();
  }

  /** States the width that keyed batches were routed by (spec/wire.md §4.4). */
  #declareWidth(scope: StreamScope): void {
    const { route } = scope;
    if (route.width === null || this.#declared.get(scope) === route.width) return;
    this.#declared.set(scope, route.width);
    encodeMessage({
      type: "publish_width",
      tenant_id: scope.tenant,
      namespace: scope.namespace,
      stream: scope.stream,
      shards: route.width,
      ...(route.mapping === "jumpHash" ? { routing: "jump_hash" } : {}),
    }, this.#channel.out);
  }
}
