// When tokens are fetched, shared, kept and dropped (spec/client.md §14). The clock is the test's
// own; nothing here waits.

import { assert, assertEquals, assertRejects } from "@std/assert";
import { refreshingToken } from "./refreshing_token.ts";
import { tokenLife } from "./token_life.ts";

function jwt(claims: Record<string, unknown>): string {
  const part = (value: unknown): string =>
    new TextEncoder().encode(JSON.stringify(value)).toBase64({
      alphabet: "base64url",
      omitPadding: true,
    });
  return `${part({ alg: "EdDSA" })}.${part(claims)}.c2ln`;
}

/** A provider whose clock and fetches the test holds in its hand. */
function controlled(lifeSeconds: number, options: { initial?: string } = {}) {
  const state = { nowMs: 1_000_000, fetches: 0, fail: false };
  const provider = refreshingToken({
    ...options,
    now: () => state.nowMs,
    fetch: () => {
      state.fetches++;
      if (state.fail) return Promise.reject(new Error("down"));
      return Promise.resolve(
        jwt({ exp: state.nowMs / 1000 + lifeSeconds, n: state.fetches }),
      );
    },
  });
  return { state, provider };
}

Deno.test("fetched on first use, kept, and replaced after two thirds of its life", async () => {
  const { state, provider } = controlled(300);
  const first = await provider.token();
  assertEquals(state.fetches, 1);
  state.nowMs += 199_000;
  assertEquals(await provider.token(), first);
  state.nowMs += 2000;
  assert(await provider.token() !== first);
  assertEquals(state.fetches, 2);
});

Deno.test("callers that come together share one fetch", async () => {
  const { state, provider } = controlled(300);
  const tokens = await Promise.all([provider.token(), provider.token(), provider.token()]);
  assertEquals(state.fetches, 1);
  assertEquals(new Set(tokens).size, 1);
});

Deno.test("a failed fetch leaves a token that still holds, and is tried again later", async () => {
  const { state, provider } = controlled(300);
  const first = await provider.token();
  state.nowMs += 201_000;
  state.fail = true;
  assertEquals(await provider.token(), first);
  assertEquals(await provider.token(), first);
  assertEquals(state.fetches, 2, "not asked again within five seconds");
  state.nowMs += 5001;
  assertEquals(await provider.token(), first);
  assertEquals(state.fetches, 3);
  state.nowMs += 95_000;
  await assertRejects(() => provider.token(), Error, "down");
});

Deno.test("a refused token is dropped, another one is not", async () => {
  const { state, provider } = controlled(300);
  const first = await provider.token();
  provider.invalidate!("some other token");
  assertEquals(await provider.token(), first);
  provider.invalidate!(first);
  assert(await provider.token() !== first);
  assertEquals(state.fetches, 2);
});

Deno.test("a token without a readable end is kept until it is refused", async () => {
  const { state, provider } = controlled(300, { initial: "opaque" });
  state.nowMs += 1e12;
  assertEquals(await provider.token(), "opaque");
  assertEquals(state.fetches, 0);
  provider.invalidate!("opaque");
  assert(await provider.token() !== "opaque");
});

Deno.test("a fetch that nobody waits for any more is called off", async () => {
  let aborted = false;
  const provider = refreshingToken({
    fetch: ({ signal }) =>
      new Promise((_, reject) => {
        signal.addEventListener("abort", () => {
          aborted = true;
          reject(signal.reason);
        });
      }),
  });
  const abort = new AbortController();
  const waiting = provider.token({ signal: abort.signal });
  abort.abort(new Error("enough"));
  await assertRejects(() => waiting, Error, "enough");
  assert(aborted);
});

Deno.test("life of a token", () => {
  assertEquals(tokenLife(jwt({ exp: 10, iat: 1 })), { issuedMs: 1000, expiresMs: 10_000 });
  assertEquals(tokenLife(jwt({ iat: 1 })), null);
  assertEquals(tokenLife(jwt({ exp: "10" })), null);
  assertEquals(tokenLife("opaque"), null);
  assertEquals(tokenLife("a.!!!.c"), null);
});
