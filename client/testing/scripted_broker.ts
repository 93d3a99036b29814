// A broker for tests. By itself it serves streams with a log and caches from memory; a test puts a
// script in front of that for whatever it wants to go differently. Not part of the package's API.

import {
  decodeMessage,
  decodePublish,
  FEATURE_CACHE_DELETE,
  FEATURE_CACHE_SHARDS,
  FEATURE_CACHE_WATCH,
  FEATURE_CACHE_WATCH_RETAINED,
  FEATURE_COUNTERS,
  FEATURE_ERROR_CODES,
  FEATURE_EXTENDED,
  FEATURE_PUBLISH_PIPELINE,
  FEATURE_REDIRECT,
  FEATURE_SHARD_MOVED,
  FEATURE_STREAM_PUBLISH_WINDOW,
  FEATURE_STREAM_SHARDS,
  FEATURE_SUBSCRIPTION_LAGGED,
  FEATURE_UNSUPPORTED,
  KNOWN_FLAGS,
} from "@felix/wire";
import type { AuthMessage, Message, PublishFrame } from "@felix/wire";
import { ensureDevelopmentCertificates, nativeTransport } from "@felix/transport";
import type { DevelopmentCertificates, Listener } from "@felix/transport";
import { BrokerConnection, BrokerStream } from "./broker_stream.ts";
import { MemoryBroker } from "./memory_broker.ts";

/** Goes first; true = it has dealt with it. */
export interface Script {
  /** Called for each `auth`. */
  auth?(stream: BrokerStream, message: AuthMessage): boolean | Promise<boolean>;
  /** Called for each message after `auth`. */
  message?(stream: BrokerStream, message: Message): boolean | Promise<boolean>;
  /** Called for each publish; views live until it returns. */
  publish?(stream: BrokerStream, frame: PublishFrame): boolean | Promise<boolean>;
}

/** What a scripted broker says about itself. */
export interface Advertised {
  flags: number;
  features: number;
  featuresHigh: number;
  publishWindow: number;
  listenerPorts?: readonly number[];
}

/** Everything that the memory broker behind the script serves. */
export const DEFAULT_FEATURES: number = (FEATURE_CACHE_DELETE | FEATURE_STREAM_SHARDS |
  FEATURE_CACHE_SHARDS | FEATURE_ERROR_CODES | FEATURE_SHARD_MOVED | FEATURE_UNSUPPORTED |
  FEATURE_PUBLISH_PIPELINE | FEATURE_STREAM_PUBLISH_WINDOW | FEATURE_SUBSCRIPTION_LAGGED |
  FEATURE_REDIRECT | FEATURE_COUNTERS | FEATURE_CACHE_WATCH | FEATURE_CACHE_WATCH_RETAINED |
  FEATURE_EXTENDED) >>> 0;

let certificates: Promise<DevelopmentCertificates> | null = null;

/** Certificates for tests, made once per process in a directory that is removed at once. */
export function testCertificates(): Promise<DevelopmentCertificates> {
  return certificates ??= (async () => {
    const directory = await Deno.makeTempDir({ prefix: "felix-client-test-" });
    try {
      return await ensureDevelopmentCertificates(directory, []);
    } finally {
      await Deno.remove(directory, { recursive: true });
    }
  })();
}

/** A broker for tests. */
export class ScriptedBroker implements AsyncDisposable {
  /** Where it listens. */
  readonly address: string;
  /** CA that it can be verified with. */
  readonly ca: string;
  /** What goes first. */
  readonly script: Script;
  /** What it tells clients about itself. */
  readonly advertised: Advertised;
  /** What serves everything that the script leaves. */
  readonly memory: MemoryBroker;
  /** Connections in the order they came. */
  readonly connections: BrokerConnection[] = [];
  /** Messages after `auth`, in the order they came. */
  readonly messages: Message[] = [];
  /** Accepted `auth` messages. */
  readonly auths: AuthMessage[] = [];
  readonly #listener: Listener;

  private constructor(
    listener: Listener,
    ca: string,
    script: Script,
    advertised: Advertised,
    memory: MemoryBroker,
  ) {
    this.#listener = listener;
    this.ca = ca;
    this.script = script;
    this.advertised = advertised;
    this.memory = memory;
    this.address = `127.0.0.1:${listener.port}`;
    void this.#accept();
  }

  /** Starts one; `port` 0 takes any. */
  static async start(
    script: Script = {},
    options: Partial<Advertised> & { port?: number; memory?: MemoryBroker; alpn?: string[] } = {},
  ): Promise<ScriptedBroker> {
    const { ca, cert, key } = await testCertificates();
    const listener = await nativeTransport.listen({
      hostname: "127.0.0.1",
      port: options.port ?? 0,
      cert,
      key,
      alpn: options.alpn ?? [],
    });
    const advertised: Advertised = {
      flags: options.flags ?? KNOWN_FLAGS,
      features: options.features ?? DEFAULT_FEATURES,
      featuresHigh: options.featuresHigh ?? 0,
      publishWindow: options.publishWindow ?? 256,
      ...(options.listenerPorts === undefined ? {} : { listenerPorts: options.listenerPorts }),
    };
    const memory = options.memory ?? new MemoryBroker();
    return new ScriptedBroker(listener, ca, script, advertised, memory);
  }

  /** UDP port that it listens on. */
  get port(): number {
    return this.#listener.port;
  }

  /** Connections that are open. */
  get open(): BrokerConnection[] {
    return this.connections.filter((connection) => !connection.ended);
  }

  /** Messages of one type, in the order they came. */
  of<T extends Message["type"]>(type: T): Extract<Message, { type: T }>[] {
    return this.messages.filter((message) => message.type === type) as Extract<
      Message,
      { type: T }
    >[];
  }

  /** Closes all connections; it goes on listening. */
  drop(code = 0, reason = "broker shutting down"): void {
    for (const connection of this.open) connection.close(code, reason);
  }

  /** Stops. */
  async stop(): Promise<void> {
    this.drop();
    await this.#listener.close();
    await Promise.all(this.connections.map(({ connection }) => connection.closed));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  async #accept(): Promise<void> {
    for (;;) {
      const incoming = await this.#listener.accept();
      if (incoming === null) return;
      incoming.accept().then((accepted) => {
        const connection = new BrokerConnection(accepted);
        this.connections.push(connection);
        void this.#streams(connection);
      }, () => undefined);
    }
  }

  async #streams(connection: BrokerConnection): Promise<void> {
    for (;;) {
      const accepted = await connection.connection.acceptBidirectional();
      if (accepted === null) return;
      const stream = new BrokerStream(connection, accepted);
      connection.streams.push(stream);
      void this.#serve(stream);
    }
  }

  async #serve(stream: BrokerStream): Promise<void> {
    for (;;) {
      for (let frame = stream.reader.next(); frame !== null; frame = stream.reader.next()) {
        if (frame.flags === 0) await this.#message(stream, decodeMessage(frame.payload));
        else await this.#publish(stream, decodePublish(frame.flags, frame.payload));
      }
      if (!await stream.fill()) break;
    }
    stream.finished = true;
    this.memory.streamEnded(stream);
    stream.finish();
  }

  async #message(stream: BrokerStream, message: Message): Promise<void> {
    if (message.type === "auth") {
      stream.auth = message;
      if (await this.script.auth?.(stream, message)) return;
      this.auths.push(message);
      return this.accept(stream);
    }
    this.messages.push(message);
    if (await this.script.message?.(stream, message)) return;
    await this.memory.message(stream, message);
  }

  /** Accepts an `auth`. */
  accept(stream: BrokerStream): void {
    const { flags, features, featuresHigh, publishWindow, listenerPorts } = this.advertised;
    stream.send({
      type: "auth_ok",
      server_flags: flags,
      server_features: features,
      ...((features & FEATURE_EXTENDED) === 0 ? {} : { server_features_hi: featuresHigh }),
      ...(listenerPorts === undefined ? {} : { listener_ports: [...listenerPorts] }),
      ...(publishWindow === 0 ? {} : { publish_window: publishWindow }),
    });
  }

  async #publish(stream: BrokerStream, frame: PublishFrame): Promise<void> {
    if (await this.script.publish?.(stream, frame)) return;
    this.memory.publish(stream, frame);
  }
}
