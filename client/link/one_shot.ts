// A request on a stream of its own: `auth`, the request, its answer, and the stream ends. Used for
// what is asked rarely, so that an answer can never be mistaken for another one's.

import { decodeMessage, encodeMessage } from "@felix/wire";
import type { Message } from "@felix/wire";
import { errorFromRefusal } from "../failure/broker_failure.ts";
import type { FailureContext } from "../failure/broker_failure.ts";
import { ConnectionError, ProtocolError, UnsupportedError } from "../failure/classes.ts";
import { FelixError } from "../failure/felix_error.ts";
import type { Channel, ChannelUser } from "./channel.ts";
import type { Link } from "./link.ts";
import { refusalOf } from "./refusal.ts";

/** What is being asked, for errors. */
export type OneShotContext = Omit<FailureContext, "broker">;

class OneShot implements ChannelUser {
  readonly answer: Promise<Message>;
  readonly #context: FailureContext;
  #resolve!: (message: Message) => void;
  #reject!: (error: unknown) => void;

  constructor(context: FailureContext) {
    this.#context = context;
    this.answer = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.answer.catch(() => undefined);
  }

  onFrame(flags: number, payload: Uint8Array): void {
    if (flags !== 0) {
      throw new ProtocolError({ message: `unexpected frame flags ${flags}`, ...this.#context });
    }
    const message = decodeMessage(payload);
    if (message.type === "error") {
      this.#reject(errorFromRefusal(refusalOf(message), this.#context));
    } else if (message.type === "unsupported") {
      this.#reject(
        new UnsupportedError({
          message: `the broker does not know ${message.request_type}`,
          ...this.#context,
          feature: message.request_type,
        }),
      );
    } else {
      this.#resolve(message);
    }
  }

  onEnd(cause: unknown): void {
    this.#reject(
      cause instanceof FelixError && !(cause instanceof ConnectionError)
        ? cause
        : new ConnectionError("request", {
          message: "the stream ended before the answer",
          ...this.#context,
          cause: cause ?? undefined,
        }),
    );
  }
}

/**
 * Sends `request` on a stream of its own and resolves with the answer, which is never `error` or
 * `unsupported`. With `finish` our side ends right after the request (as for `subscribe`).
 */
export async function oneShot(
  link: Link,
  request: Message,
  context: OneShotContext,
  finish: boolean,
): Promise<{ message: Message; channel: Channel }> {
  const channel = await link.openChannel();
  const user = new OneShot({ ...context, broker: link.broker });
  channel.user = user;
  encodeMessage(request, channel.out);
  channel.flushSoon();
  if (finish) void channel.finish();
  try {
    const message = await user.answer;
    if (!finish) void channel.finish();
    return { message, channel };
  } catch (error) {
    channel.abandon(error);
    // Only a coded answer proves that the broker is alive (spec/client.md §12.5).
    if (!(error instanceof FelixError) || error.brokerCode === undefined) channel.distrust();
    else if (error.brokerCode === "draining") channel.distrust();
    throw error;
  }
}
