// What the client offers and how features are named (spec/wire.md §3.5). Only what is implemented
// may be offered.

import { assert, assertEquals } from "@std/assert";
import {
  FEATURE_ACK_ON_COMMIT,
  FEATURE_CACHE_CONDITIONAL,
  FEATURE_CONSUMER_GROUP,
  FLAG_EVENT_BATCH_PUBLISHER,
  FLAG_EVENT_BATCH_TIMESTAMPS,
} from "@felix/wire";
import { offerOf, servedFeatures, serves } from "./features.ts";

const plain = offerOf({ ackOnCommit: false, publishers: false });

Deno.test("bits that change every exchange are offered only when asked for", () => {
  assertEquals(plain.client_features & FEATURE_ACK_ON_COMMIT, 0);
  assertEquals(plain.client_flags & FLAG_EVENT_BATCH_PUBLISHER, 0);
  const all = offerOf({ ackOnCommit: true, publishers: true });
  assert((all.client_features & FEATURE_ACK_ON_COMMIT) !== 0);
  assert((all.client_flags & FLAG_EVENT_BATCH_PUBLISHER) !== 0);
});

Deno.test("what this client does not implement is not offered", () => {
  assertEquals(plain.client_features & FEATURE_CONSUMER_GROUP, 0);
  assertEquals(plain.client_features & FEATURE_CACHE_CONDITIONAL, 0);
  assertEquals(plain.client_flags & FLAG_EVENT_BATCH_TIMESTAMPS, 0);
  assertEquals(plain.client_flags, 0x1fff);
  assert(plain.client_features > 0x7fff_ffff, "the marker of the second word");
});

Deno.test("features by name", () => {
  const negotiated = {
    flags: 0x1000,
    features: 0x0000_0004,
    featuresHigh: 0x04,
    publishWindow: 0,
    listenerPorts: [],
  };
  assert(serves(negotiated, "cacheDelete"));
  assert(!serves(negotiated, "topology"));
  assertEquals(servedFeatures(negotiated), ["ackOffset", "cacheDelete", "publishWidth"]);
});
