// What is known about where one stream or cache lives: its width, how keys map to shards, and who
// owns each shard. The rule: a newer generation wins, an older one is ignored
// (spec/client.md §12.3).

import { shardForKey } from "@felix/wire";
import type { BrokerAddress } from "../address.ts";
import type { StreamRouting } from "../types.ts";

/** Who owns a shard, as far as this client was told. */
export interface KnownOwner {
  readonly nodeId: string;
  readonly address: BrokerAddress;
  readonly generation: bigint;
}

/** Where one stream or cache lives. */
export class Route {
  /** `stream` or `cache`. */
  readonly kind: "stream" | "cache";
  readonly namespace: string;
  readonly name: string;
  /** Number of shards; `null` = not known. */
  width: number | null = null;
  /** How keys pick a shard. */
  mapping: StreamRouting["mapping"] = "modulo";
  /** Whether owners were asked for, with or without an answer. */
  ownersLoaded = false;
  /** When owners were last asked for, on the monotonic clock. */
  ownersAskedMs = -Infinity;
  /** When the width was last asked for. */
  widthAskedMs = -Infinity;
  /** Load under way. */
  loading: Promise<void> | null = null;
  readonly #owners = new Map<number, KnownOwner>();

  /** Nothing known yet. */
  constructor(kind: "stream" | "cache", namespace: string, name: string) {
    this.kind = kind;
    this.namespace = namespace;
    this.name = name;
  }

  /** `namespace/name`. */
  get resource(): string {
    return `${this.namespace}/${this.name}`;
  }

  /** The shard of a key; 0 without one; `null` when the width is not known. */
  shardOf(key: Uint8Array | null): number | null {
    if (key === null) return 0;
    if (this.width === null) return null;
    return shardForKey(key, this.width, this.mapping === "jumpHash" ? "jump_hash" : "modulo");
  }

  /** The remembered owner of a shard. */
  owner(shard: number): KnownOwner | undefined {
    return this.#owners.get(shard);
  }

  /** Whether any owner is remembered. */
  get hasOwners(): boolean {
    return this.#owners.size > 0;
  }

  /** Remembers an owner; false when a newer one is known. */
  learn(shard: number, owner: KnownOwner): boolean {
    const known = this.#owners.get(shard);
    if (known !== undefined && known.generation > owner.generation) return false;
    this.#owners.set(shard, owner);
    return true;
  }

  /** Forgets the owner of a shard, or only if it is `address`. */
  forget(shard: number, address?: string): void {
    if (address !== undefined && this.#owners.get(shard)?.address.text !== address) return;
    this.#owners.delete(shard);
  }

  /** The width must be asked for again. */
  forgetWidth(): void {
    this.width = null;
    this.widthAskedMs = -Infinity;
  }
}
