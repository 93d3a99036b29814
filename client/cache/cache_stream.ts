// One stream that carries cache requests, many at a time. Answers are matched by request id; an
// `error` names none and answers the oldest request (spec/wire.md §4.2).

import { Deque } from "../deque.ts";
import { ValueSlab } from "./value_slab.ts";
import { decodeMessage } from "@felix/wire";
import { errorFromRefusal } from "../failure/broker_failure.ts";
import { ConnectionError, ProtocolError, UnsupportedError } from "../failure/classes.ts";
import type { FelixError } from "../failure/felix_error.ts";
import type { Channel, ChannelUser } from "../link/channel.ts";
import type { Link } from "../link/link.ts";
import { refusalOf } from "../link/refusal.ts";
import type { CacheCall } from "./cache_call.ts";
import { appendKeyRequest, appendPut, glance, quickValue } from "./cache_frames.ts";
import type { QuickAnswer } from "./cache_frames.ts";

/** What a stream reports. */
export interface CacheStreamHost {
  /** A request was refused, or what became of it is not known. */
  failed(call: CacheCall, error: FelixError): void;
  /** The stream has ended. */
  ended(stream: CacheStream): void;
  /** Milliseconds after which an unanswered request means that the stream is stuck. */
  readonly stallMs: number;
}

/** One stream of cache requests. */
export class CacheStream implements ChannelUser {
  /** Address of its broker. */
  readonly broker: string;
  /** What the broker serves. */
  readonly channel: Channel;
  readonly #host: CacheStreamHost;
  readonly #link: Link;
  /** In the order they were sent, which is the order of their answers. */
  readonly #pending = new Deque<CacheCall>();
  readonly #slab = new ValueSlab();
  readonly #answer: QuickAnswer = { kind: "other", id: 0, position: 0 };
  /** Whether the last frame was a refusal: an end right behind it left the rest untouched. */
  #refusedLast = false;

  /** Takes over an authenticated channel. */
  constructor(host: CacheStreamHost, link: Link, channel: Channel) {
    this.#host = host;
    this.#link = link;
    this.channel = channel;
    this.broker = channel.broker;
    channel.user = this;
  }

  /** Whether new requests may be given to it. */
  get usable(): boolean {
    return this.channel.writable && this.#link.open;
  }

  /** Requests that wait for their answer. */
  get outstanding(): number {
    return this.#pending.size;
  }

  /** Sends a request. */
  send(call: CacheCall, requestId: number, nowMs: number): void {
    const { request, scope } = call;
    const { out } = this.channel;
    const { pieces } = scope;
    call.attempts++;
    call.state = "sent";
    call.sentMs = nowMs;
    const keyBytes = request.kind === "put"
      ? appendPut(out, pieces.put, {
        key: request.key,
        value: request.value!,
        ttlMs: request.ttlMs,
        requestId,
      })
      : appendKeyRequest(out, pieces[request.kind], request.key, requestId);
    call.keyEnd = pieces.valuePrefixBytes + keyBytes;
    call.requestId = requestId;
    this.#pending.push(call);
    this.channel.flushSoon();
  }

  /** Ends requests whose time is over, and the stream when it is stuck. */
  sweep(nowMs: number): void {
    for (const call of this.#pending) {
      if (nowMs - call.sentMs < this.#host.stallMs) {
        call.expire(nowMs);
        continue;
      }
      this.channel.distrust();
      this.channel.abandon(
        new ConnectionError("request", {
          message: `a request was not answered within ${this.#host.stallMs} ms`,
          operation: call.operation,
          broker: this.broker,
        }),
      );
      return;
    }
  }

  onFrame(flags: number, payload: Uint8Array): void {
    const answer = glance(payload, this.#answer);
    if (flags !== 0 || answer.kind === "other") return this.#readOther(flags, payload);
    const call = this.#take(answer.id);
    if (call.state === "done") return;
    if (answer.kind === "ok") {
      if (call.request.kind !== "put") throw this.#unexpected("cache_ok", call);
      return call.succeed(null);
    }
    if (call.request.kind === "put") throw this.#unexpected("cache_value", call);
    const value = quickValue(payload, call.keyEnd, answer.position, this.#slab);
    if (value !== undefined) return call.succeed(value);
    const message = decodeMessage(payload);
    if (message.type !== "cache_value") throw this.#unexpected(message.type, call);
    call.succeed(message.value);
  }

  onEnd(cause: unknown): void {
    const owed = this.#pending.takeAll();
    const untouched = cause === null && this.#refusedLast;
    if (owed.length > 0 && !untouched) this.channel.distrust();
    this.#host.ended(this);
    for (const call of owed) {
      if (call.state !== "sent") continue;
      this.#host.failed(call, this.#lost(call, cause, untouched));
    }
  }

  #take(id: number): CacheCall {
    this.#refusedLast = false;
    const first = this.#pending.peek();
    if (first !== undefined && first.requestId === id) return this.#pending.shift()!;
    const call = [...this.#pending].find((pending) => pending.requestId === id);
    if (call === undefined) {
      throw new ProtocolError({
        message: `an answer to cache request ${id}, which was not asked`,
        operation: "cache",
        broker: this.broker,
      });
    }
    this.#pending.remove(call);
    return call;
  }

  #readOther(flags: number, payload: Uint8Array): void {
    if (flags !== 0) throw this.#unexpected(`frame flags ${flags}`, undefined);
    const message = decodeMessage(payload);
    switch (message.type) {
      case "error": {
        const call = this.#pending.shift();
        if (call === undefined) throw this.#unexpected("error", undefined);
        this.#refusedLast = true;
        const refusal = refusalOf(message);
        // Without a code nothing proves that the broker is well (spec/client.md §12.5).
        if (refusal.code === undefined || refusal.code === "draining") this.channel.distrust();
        const { operation, resource, attempts } = call;
        const context = { operation, resource, attempts, broker: this.broker };
        if (call.state === "sent") this.#host.failed(call, errorFromRefusal(refusal, context));
        return;
      }
      case "unsupported": {
        const call = this.#take(Number(message.request_id ?? this.#pending.peek()?.requestId));
        return call.fail(
          new UnsupportedError({
            message: `the broker does not know ${message.request_type}`,
            operation: call.operation,
            resource: call.resource,
            broker: this.broker,
            feature: message.request_type,
          }),
        );
      }
      case "cache_value":
        return this.#take(Number(message.request_id)).succeed(message.value);
      case "cache_ok":
        return this.#take(Number(message.request_id)).succeed(null);
      default:
        throw this.#unexpected(message.type, undefined);
    }
  }

  #lost(call: CacheCall, cause: unknown, untouched: boolean): FelixError {
    const { operation, resource, attempts } = call;
    if (!untouched && !call.idempotent) {
      return call.unknown(cause ?? undefined, this.broker, "the stream ended before the answer");
    }
    if (cause instanceof ProtocolError && call.request.kind === "get") return cause;
    return new ConnectionError("request", {
      message: "the stream ended before the answer",
      operation,
      resource,
      attempts,
      broker: this.broker,
      cause: cause ?? undefined,
    });
  }

  #unexpected(what: string, call: CacheCall | undefined): ProtocolError {
    const error = new ProtocolError({
      message: `${what} on a cache stream`,
      operation: call?.operation ?? "cache",
      broker: this.broker,
    });
    // It was taken out of the pending ones already, so it has to be settled here.
    if (call !== undefined) this.#host.failed(call, this.#lost(call, error, false));
    return error;
  }
}
