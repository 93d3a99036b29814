// One stream that carries cache requests, many at a time. Answers are matched by request id; an
// `error` names none and answers the oldest request (spec/wire.md §4.2).

import { Deque } from "../deque.ts";
import { ValueSlab } from "./value_slab.ts";
import { decodeMessage, encodeMessage } from "@felix/wire";
import type { Message } from "@felix/wire";
import { errorFromRefusal } from "../failure/broker_failure.ts";
import { ConnectionError, ProtocolError, UnsupportedError } from "../failure/classes.ts";
import type { FelixError } from "../failure/felix_error.ts";
import { serves } from "../features.ts";
import type { Channel, ChannelUser } from "../link/channel.ts";
import type { Link } from "../link/link.ts";
import { refusalOf } from "../link/refusal.ts";
import type { CacheAnswer, CacheCall, CacheKind } from "./cache_call.ts";
import { appendKeyRequest, appendPut, glance, quickValue } from "./cache_frames.ts";
import type { QuickAnswer } from "./cache_frames.ts";

/** What each kind is answered with. */
const ANSWERS: Readonly<Record<CacheKind, Message["type"]>> = {
  get: "cache_value",
  put: "cache_ok",
  delete: "cache_value",
  counterAdd: "counter_value",
  counterGet: "counter_value",
};

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
    const feature = call.request.other?.feature;
    call.attempts++;
    if (feature !== undefined && !serves(this.channel.negotiated!, feature)) {
      return call.fail(this.#unsupported(call, feature));
    }
    call.state = "sent";
    call.sentMs = nowMs;
    this.#append(call, requestId);
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
    const type = answer.kind === "ok" ? "cache_ok" : "cache_value";
    if (ANSWERS[call.request.kind] !== type) throw this.#unexpected(type, call);
    if (answer.kind === "ok") return call.succeed(null);
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

  #append(call: CacheCall, requestId: number): void {
    const { kind, key, value, ttlMs, other } = call.request;
    const { out } = this.channel;
    const { pieces } = call.scope;
    if (other !== null) return encodeMessage(other.message(BigInt(requestId)), out);
    const keyBytes = kind === "put"
      ? appendPut(out, pieces.put, { key, value: value!, ttlMs, requestId })
      : appendKeyRequest(out, kind === "get" ? pieces.get : pieces.delete, key, requestId);
    call.keyEnd = pieces.valuePrefixBytes + keyBytes;
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
        return call.fail(this.#unsupported(call, message.request_type));
      }
      case "cache_value":
        return this.#settle(message, message.value);
      case "cache_ok":
        return this.#settle(message, null);
      case "counter_value":
        return this.#settle(message, message.value ?? null);
      default:
        throw this.#unexpected(message.type, undefined);
    }
  }

  #settle(
    message: { readonly type: Message["type"]; readonly request_id?: bigint },
    answer: CacheAnswer,
  ): void {
    const call = this.#take(Number(message.request_id));
    if (call.state === "done") return;
    const { kind } = call.request;
    if (ANSWERS[kind] !== message.type) throw this.#unexpected(message.type, call);
    if (kind === "counterAdd" && answer === null) throw this.#unexpected("a sum of nothing", call);
    call.succeed(answer);
  }

  #unsupported(call: CacheCall, feature: string): UnsupportedError {
    return new UnsupportedError({
      message: `the broker does not know ${feature}`,
      operation: call.operation,
      resource: call.resource,
      broker: this.broker,
      feature,
    });
  }

  #lost(call: CacheCall, cause: unknown, untouched: boolean): FelixError {
    const { operation, resource, attempts } = call;
    if (!untouched && !call.idempotent) {
      return call.unknown(cause ?? undefined, this.broker, "the stream ended before the answer");
    }
    if (cause instanceof ProtocolError && call.reads) return cause;
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
