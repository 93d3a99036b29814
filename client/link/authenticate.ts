// Authenticates one stream: `auth` goes out, nothing else until the answer is there. A refused
// token is replaced once, on a fresh stream, if the provider has another one (spec/wire.md §3.1,
// spec/client.md §14).

import { decodeMessage, encodeMessage, ORIGINAL_FLAGS } from "@felix/wire";
import type { AuthOkMessage, ErrorMessage } from "@felix/wire";
import { errorFromRefusal } from "../failure/broker_failure.ts";
import { AuthError, ConnectionError, ProtocolError } from "../failure/classes.ts";
import type { FelixError } from "../failure/felix_error.ts";
import type { Negotiated } from "../features.ts";
import type { Channel, ChannelUser } from "./channel.ts";
import type { ClientCore } from "./client_core.ts";
import { refusalOf } from "./refusal.ts";

/** What a broker that answers with a plain `ok` is taken to be (spec/wire.md §3.2). */
const PLAIN: Negotiated = {
  flags: ORIGINAL_FLAGS,
  features: 0,
  featuresHigh: 0,
  publishWindow: 0,
  listenerPorts: [],
};

function negotiated(message: AuthOkMessage): Negotiated {
  const features = (message.server_features ?? 0) >>> 0;
  const extended = (features & 0x8000_0000) !== 0;
  return {
    flags: message.server_flags,
    features,
    featuresHigh: extended ? (message.server_features_hi ?? 0) >>> 0 : 0,
    publishWindow: message.publish_window ?? 0,
    listenerPorts: message.listener_ports ?? [],
  };
}

function refused(message: ErrorMessage, broker: string): FelixError {
  const context = { operation: "connect", broker };
  if (message.code === undefined) {
    return new AuthError("unauthenticated", { message: message.message, ...context });
  }
  if (message.code === "draining") {
    return new ConnectionError("auth", {
      message: message.message,
      ...context,
      brokerCode: message.code,
      retry: "retry",
    });
  }
  return errorFromRefusal(refusalOf(message), context);
}

class AuthStage implements ChannelUser {
  readonly answer: Promise<Negotiated>;
  readonly #channel: Channel;
  #resolve!: (value: Negotiated) => void;
  #reject!: (error: unknown) => void;

  constructor(channel: Channel) {
    this.#channel = channel;
    this.answer = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.answer.catch(() => undefined);
  }

  onFrame(flags: number, payload: Uint8Array): void {
    const message = flags === 0 ? decodeMessage(payload) : null;
    switch (message?.type) {
      case "auth_ok":
        return this.#resolve(negotiated(message));
      case "ok":
        return this.#resolve(PLAIN);
      case "error":
        return this.#reject(refused(message, this.#channel.broker));
      default:
        throw new ProtocolError({
          message: `auth was answered with ${message?.type ?? `flags ${flags}`}`,
          operation: "connect",
          broker: this.#channel.broker,
        });
    }
  }

  onEnd(cause: unknown): void {
    this.#reject(
      cause instanceof ProtocolError ? cause : new ConnectionError("auth", {
        message: "the stream ended before auth was answered",
        operation: "connect",
        broker: this.#channel.broker,
        cause: cause ?? undefined,
      }),
    );
  }
}

async function authenticateOnce(
  core: ClientCore,
  open: () => Promise<Channel>,
  token: string,
): Promise<Channel> {
  const channel = await open();
  const stage = new AuthStage(channel);
  encodeMessage({
    type: "auth",
    tenant_id: core.settings.tenant,
    token,
    ...core.settings.offer,
  }, channel.out);
  channel.start(stage);
  channel.flushSoon();
  try {
    channel.negotiated = await stage.answer;
    return channel;
  } catch (error) {
    channel.abandon(error);
    throw error;
  }
}

/**
 * Opens a stream with `open` and authenticates it.
 * @throws {AuthError} the token was refused
 * @throws {ConnectionError} no answer, or the broker is draining
 */
export async function authenticate(
  core: ClientCore,
  open: () => Promise<Channel>,
): Promise<Channel> {
  const token = await askForToken(core);
  try {
    return await authenticateOnce(core, open, token);
  } catch (error) {
    if (!(error instanceof AuthError) || error.code !== "unauthenticated") throw error;
    core.tokens.invalidate?.(token);
    const other = await askForToken(core);
    if (other === token) throw error;
    return await authenticateOnce(core, open, other);
  }
}

async function askForToken(core: ClientCore): Promise<string> {
  try {
    return await core.tokens.token();
  } catch (cause) {
    throw new AuthError("unauthenticated", {
      message: "the token provider gave no token",
      operation: "connect",
      cause,
    });
  }
}
