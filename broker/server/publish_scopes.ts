// Where a publish goes, remembered per stream of the client: names are decoded and grants checked
// once per (tenant, namespace, stream), and a frame whose scope bytes equal the last one's costs a
// comparison of bytes. A stream that is removed or appears later is noticed at the next publish.

import type { PublishFrame } from "@felix/wire";
import type { Stream, StreamRegistry } from "../core/mod.ts";
import type { Peer } from "./negotiation.ts";
import { REFUSAL } from "./refusal.ts";
import type { Refusal } from "./refusal.ts";

/** Scopes remembered per client stream. */
const MAX_SCOPES = 256;

/** One (tenant, namespace, stream) as seen by one client. */
export class PublishScope {
  #stream: Stream | undefined;

  constructor(
    readonly streams: StreamRegistry,
    readonly tenant: string,
    readonly namespace: string,
    readonly name: string,
    /** Why this client may not publish there; `null` = it may. */
    readonly refusal: Refusal | null,
  ) {}

  /** The stream, if it exists now. */
  stream(): Stream | undefined {
    const known = this.#stream;
    if (known !== undefined && known.active) return known;
    return this.#stream = this.streams.find(this.tenant, this.namespace, this.name);
  }
}

/** The scopes that one client stream publishes to. */
export class PublishScopes {
  readonly #streams: StreamRegistry;
  readonly #peer: Peer;
  readonly #known = new Map<string, PublishScope>();
  #lastBytes: Uint8Array = new Uint8Array(0);
  #last: PublishScope | null = null;

  constructor(streams: StreamRegistry, peer: Peer) {
    this.#streams = streams;
    this.#peer = peer;
  }

  /** The scope of a binary frame. */
  ofFrame(frame: PublishFrame): PublishScope {
    const bytes = frame.scope;
    if (this.#last !== null && equal(bytes, this.#lastBytes)) return this.#last;
    const scope = this.ofNames(frame.tenant, frame.namespace, frame.stream);
    this.#lastBytes = bytes.slice();
    return this.#last = scope;
  }

  /** The scope with these names. */
  ofNames(tenant: string, namespace: string, name: string): PublishScope {
    const key = `${tenant.length}:${tenant}${namespace.length}:${namespace}${name}`;
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const scope = new PublishScope(
      this.#streams,
      tenant,
      namespace,
      name,
      this.#refusal(tenant, namespace, name),
    );
    if (this.#known.size >= MAX_SCOPES) this.#known.clear();
    this.#known.set(key, scope);
    return scope;
  }

  #refusal(tenant: string, namespace: string, name: string): Refusal | null {
    if (tenant !== this.#peer.tenant) return REFUSAL.tenantMismatch;
    const object = `stream:${tenant}/${namespace}/${name}`;
    return this.#peer.grants.allows("stream.publish", object) ? null : REFUSAL.forbidden;
  }
}

function equal(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  for (let at = a.length - 1; at >= 0; at--) {
    if (a[at] !== b[at]) return false;
  }
  return true;
}
