// What every interoperation test stands on: a development broker in a process of its own, the
// published Python client in another, and this repository's client. Closed together, also on
// failure.

import type { FelixClient } from "@felix/client";
import { connectTo } from "../support/dev_client.ts";
import { DevBroker, type DevBrokerOptions } from "../support/servers.ts";
import { base64, PythonDriver } from "./python_driver.ts";
import { ensurePython } from "./venv.ts";

/** Names that the development broker has: `wide` ones have several shards. */
export const STREAM = "events";
export const WIDE_STREAM = "wide";
export const CACHE = "sessions";
export const WIDE_CACHE = "wide";

/** A broker and both kinds of client. */
export class World implements AsyncDisposable {
  readonly broker: DevBroker;
  readonly python: PythonDriver;
  readonly #resources: AsyncDisposableStack;
  #names = 0;

  private constructor(broker: DevBroker, python: PythonDriver, resources: AsyncDisposableStack) {
    this.broker = broker;
    this.python = python;
    this.#resources = resources;
  }

  /** Starts a broker and a driver. */
  static async open(options: DevBrokerOptions = {}): Promise<World> {
    await using resources = new AsyncDisposableStack();
    const broker = resources.use(await DevBroker.start(options));
    const python = resources.use(new PythonDriver(await ensurePython()));
    return new World(broker, python, resources.move());
  }

  /** Arguments that name a stream or cache of the development tenant. */
  scope(name: string): [string, string, string] {
    return [this.broker.tenant, this.broker.namespace, name];
  }

  /** A name that no other client or reader of this world has. */
  newName(): string {
    return `n${++this.#names}`;
  }

  /** Connects a published client with what the broker's development files say. */
  async connectPython(overrides: Readonly<Record<string, unknown>> = {}): Promise<string> {
    const client = this.newName();
    await this.python.call("connect", { ...this.connectArguments(), ...overrides, client });
    return client;
  }

  /** What `connect` of the driver takes. */
  connectArguments(): Record<string, unknown> {
    const { broker, tenant, token, caFile } = this.broker;
    return { address: broker, tenant, token, ca_file: caFile };
  }

  /** Publishes `payload` with a published client; resolves with the offset, if any. */
  publish(
    client: string,
    stream: string,
    payload: string | Uint8Array,
    options: { readonly key?: string; readonly ack?: string } = {},
  ): Promise<number | null> {
    const key = options.key === undefined ? {} : { key: base64(options.key) };
    const args = { client, scope: this.scope(stream), payload: base64(payload) };
    return this.python.call("publish", { ...options, ...key, ...args });
  }

  /** Subscribes with a published client; resolves with the reader's name. */
  async subscribe(
    client: string,
    stream: string,
    options: { readonly start?: string | number; readonly sharded?: boolean } = {},
  ): Promise<string> {
    const reader = this.newName();
    await this.python.call("subscribe", { ...options, client, reader, scope: this.scope(stream) });
    return reader;
  }

  /** This repository's client on the same broker, closed with the world. */
  async connectOurs(): Promise<FelixClient> {
    return this.#resources.use(await connectTo(this.broker));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#resources.disposeAsync();
  }
}

/** A named part of a test that runs in a world. */
export type Step = readonly [name: string, run: (world: World) => Promise<void>];

/** Registers one test whose steps share a world. */
export function testInWorld(name: string, options: DevBrokerOptions, steps: readonly Step[]): void {
  Deno.test({
    name,
    sanitizeOps: true,
    sanitizeResources: true,
    fn: async (context) => {
      await using world = await World.open(options);
      for (const [stepName, run] of steps) {
        await context.step({
          name: stepName,
          // Clients that a step opens live as long as the world; the outer test checks for leaks.
          sanitizeOps: false,
          sanitizeResources: false,
          fn: () => run(world),
        });
      }
    },
  });
}
