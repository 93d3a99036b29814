// Where keys come from when servers fail, answer nonsense or are asked by thousands.
// Time and key servers are in the hands of the test.

import { assertEquals, assertInstanceOf } from "@std/assert";
import { AuthRefused } from "./grants.ts";
import { createLab, labKey, labKeySet, labToken, NOW } from "./testing/token_lab.ts";
import type { Lab } from "./testing/token_lab.ts";

const key = await labKey("k1");
const other = await labKey("k2");
const LONG = { exp: NOW + 1_000_000 };

/** `ok`, or why `verify` refuses. */
async function outcome(lab: Lab, token: string, tenant = "t1"): Promise<string> {
  try {
    await lab.verifier.verify(tenant, token);
    return "ok";
  } catch (error) {
    assertInstanceOf(error, AuthRefused);
    return error.reason;
  }
}

/** Lets pending microtasks and answers run. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await Promise.resolve();
  await new Promise((resolve) => setTimeout(resolve, 0));
}

Deno.test("a thousand streams of an unknown tenant cost one fetch", async () => {
  const lab = createLab();
  const token = await labToken(key);
  const outcomes = await Promise.all(Array.from({ length: 1000 }, () => outcome(lab, token)));
  assertEquals(new Set(outcomes), new Set(["unknown_tenant"]));
  assertEquals(lab.server.asked.length, 1);
});

Deno.test("a failure is remembered for five seconds", async () => {
  const lab = createLab();
  const token = await labToken(key);
  lab.server.goDown();
  assertEquals(await outcome(lab, token), "keys_unavailable");
  lab.server.serve(labKeySet(key));
  lab.clock.seconds += 4;
  assertEquals(await outcome(lab, token), "keys_unavailable");
  assertEquals(lab.server.asked.length, 1);
  lab.clock.seconds += 1;
  assertEquals(await outcome(lab, token), "ok");
  assertEquals(lab.metrics.keySetFailures, 1);
});

Deno.test("remembered failures are bounded", async () => {
  const lab = createLab();
  const token = await labToken(key);
  for (let tenant = 0; tenant < 4100; tenant++) await outcome(lab, token, `x${tenant}`);
  await outcome(lab, token, "x4099");
  assertEquals(lab.server.asked.length, 4100, "the newest is still remembered");
  await outcome(lab, token, "x0");
  assertEquals(lab.server.asked.length, 4101, "the oldest is not");
});

Deno.test("at most eight fetches at once, and every waiter gets its turn", async () => {
  const lab = createLab();
  const answers: (() => void)[] = [];
  lab.server.answer = () =>
    new Promise((resolve) => answers.push(() => resolve(new Response(labKeySet(key)))));
  const verifying = await Promise.all(
    Array.from({ length: 20 }, async (_, index) => {
      const tenant = `t${index}`;
      return [tenant, await labToken(key, { tid: tenant })] as const;
    }),
  ).then((tokens) => tokens.map(([tenant, token]) => outcome(lab, token, tenant)));
  for (let round = 0; answers.length < 20 || round === 0; round++) {
    await settle();
    assertEquals(lab.server.open <= 8, true);
    for (const answer of answers) answer();
  }
  await settle();
  for (const answer of answers) answer();
  assertEquals(new Set(await Promise.all(verifying)), new Set(["ok"]));
  assertEquals(lab.server.mostOpen, 8);
});

Deno.test("keys past their hour serve on during an outage, and end with it", async () => {
  const lab = createLab();
  const first = await labToken(key, LONG);
  const second = await labToken(key, { ...LONG, jti: "2" });
  lab.server.serve(labKeySet(key));
  assertEquals(await outcome(lab, first), "ok");
  lab.server.goDown();
  lab.clock.seconds += 3600;
  assertEquals(await outcome(lab, first), "ok");
  assertEquals(await outcome(lab, second), "ok");
  assertEquals(lab.server.asked.length, 2, "one attempt, then none for 30 seconds");
  lab.clock.seconds += 30;
  assertEquals(await outcome(lab, first), "ok");
  await settle();
  assertEquals(lab.server.asked.length, 3, "another one in the background");
  lab.server.serve(labKeySet(other));
  lab.clock.seconds += 30;
  assertEquals(await outcome(lab, first), "ok", "served while it is fetched");
  await settle();
  assertEquals(await outcome(lab, first), "bad_signature", "the new keys are in force");
  assertEquals(lab.metrics.staleKeySets > 0, true);
});

Deno.test("stale keys have an end", async () => {
  const lab = createLab();
  const token = await labToken(key, LONG);
  lab.server.serve(labKeySet(key));
  await outcome(lab, token);
  lab.server.goDown();
  lab.clock.seconds += 3600 + 86_399;
  assertEquals(await outcome(lab, token), "ok");
  lab.clock.seconds += 2;
  assertEquals(await outcome(lab, token), "keys_unavailable");
  const asked = lab.server.asked.length;
  assertEquals(await outcome(lab, token), "keys_unavailable");
  assertEquals(lab.server.asked.length, asked, "and the failure is remembered");
});

Deno.test("without stale keys an outage shows after the hour", async () => {
  const lab = createLab({
    source: { kind: "controlplane", url: "http://cp", staleMaxSeconds: 0 },
  });
  const token = await labToken(key, LONG);
  lab.server.serve(labKeySet(key));
  await outcome(lab, token);
  lab.server.goDown();
  lab.clock.seconds += 3600;
  assertEquals(await outcome(lab, token), "keys_unavailable");
});

Deno.test("a server that says there is no such tenant ends its keys", async () => {
  const lab = createLab();
  const token = await labToken(key, LONG);
  lab.server.serve(labKeySet(key));
  await outcome(lab, token);
  lab.server.answer = () => new Response("{}", { status: 404 });
  lab.clock.seconds += 3600;
  assertEquals(await outcome(lab, token), "unknown_tenant");
});

Deno.test("a key that is not in the cache is asked for once in 30 seconds", async () => {
  const lab = createLab();
  lab.server.serve(labKeySet(key));
  await outcome(lab, await labToken(key));
  lab.server.serve(labKeySet(key, other));
  const staged = await labToken(other, LONG);
  assertEquals(await outcome(lab, staged), "bad_signature", "asked too recently");
  lab.clock.seconds += 30;
  assertEquals(await outcome(lab, staged), "ok");
  assertEquals(lab.server.asked.length, 2);
  const nobody = await labToken(await labKey("k9"), LONG);
  assertEquals(await outcome(lab, nobody), "bad_signature");
  assertEquals(lab.server.asked.length, 2);
  lab.clock.seconds += 30;
  await Promise.all(Array.from({ length: 10 }, () => outcome(lab, nobody)));
  assertEquals(lab.server.asked.length, 3, "shared");
});

const ANSWERS: [string, () => Response | Promise<Response>, string][] = [
  ["an error", () => new Response("", { status: 500 }), "keys_unavailable"],
  ["no JSON", () => new Response("<html>"), "keys_unavailable"],
  ["no key set", () => new Response('{"keys":{}}'), "keys_unavailable"],
  ["an empty key set", () => new Response('{"keys":[]}'), "no_usable_keys"],
  ["too much", () => new Response(" ".repeat(1024 * 1024 + 1)), "keys_unavailable"],
  [
    "a time-out",
    () => Promise.reject(new DOMException("timed out", "TimeoutError")),
    "keys_unavailable",
  ],
];

for (const [name, answer, reason] of ANSWERS) {
  Deno.test(`a key server that answers ${name}`, async () => {
    const lab = createLab();
    lab.server.answer = answer;
    assertEquals(await outcome(lab, await labToken(key)), reason);
  });
}

Deno.test("a JWKS URL with and without the tenant in it", async () => {
  const token = await labToken(key, { tid: "a b" });
  const each = createLab({
    source: { kind: "url", url: "https://keys/{tenant}/jwks", staleMaxSeconds: 0 },
  });
  each.server.serve(labKeySet(key));
  assertEquals(await outcome(each, token, "a b"), "ok");
  assertEquals(each.server.asked, ["https://keys/a%20b/jwks"]);
  const all = createLab({ source: { kind: "url", url: "https://keys/jwks", staleMaxSeconds: 0 } });
  all.server.serve(labKeySet(key));
  assertEquals(await outcome(all, token, "a b"), "ok");
  assertEquals(await outcome(all, token, "t1"), "tenant_mismatch");
});

Deno.test("a key file is read again when it changes, at most once a second", async () => {
  const lab = createLab({ source: { kind: "file", path: "/keys.json" } });
  const token = await labToken(key, LONG);
  lab.file.text = labKeySet(key);
  assertEquals(await outcome(lab, token), "ok");
  lab.file.text = labKeySet(other);
  lab.file.version = "2";
  assertEquals(await outcome(lab, token), "ok", "not looked at yet");
  lab.clock.seconds += 1;
  assertEquals(await outcome(lab, token), "bad_signature");
  assertEquals(await outcome(lab, await labToken(other, LONG)), "ok");
  assertEquals(lab.metrics.keySetLoads, 2);
});

Deno.test("a key file that breaks or goes leaves its keys in force", async () => {
  const lab = createLab({ source: { kind: "file", path: "/keys.json" } });
  const token = await labToken(key, LONG);
  lab.file.text = labKeySet(key);
  assertEquals(await outcome(lab, token), "ok");
  for (const text of ["{", '{"keys":[]}', null]) {
    lab.file.text = text;
    lab.file.version += "x";
    lab.clock.seconds += 2;
    assertEquals(await outcome(lab, token), "ok", String(text));
  }
  lab.file.text = labKeySet(other);
  lab.file.version = "back";
  lab.clock.seconds += 2;
  assertEquals(await outcome(lab, token), "bad_signature");
});

Deno.test("no key file at the start refuses every token", async () => {
  const lab = createLab({ source: { kind: "file", path: "/keys.json" } });
  assertEquals(await outcome(lab, await labToken(key)), "keys_unavailable");
  lab.file.text = "{";
  assertEquals(await outcome(lab, await labToken(key)), "no_usable_keys");
  lab.file.text = labKeySet(key);
  lab.clock.seconds += 1;
  assertEquals(await outcome(lab, await labToken(key)), "ok");
});
