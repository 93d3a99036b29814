// What permissions allow, compared with the plainest matcher there is.

import { assertEquals } from "@std/assert";
import fc from "fast-check";
import type { Grants } from "./grants.ts";
import { globMatches, grantsFrom } from "./permissions.ts";

function grants(...permissions: string[]): Grants {
  const claims = { tenant: "t1", subject: "p:a", expiresAtSeconds: 10, permissions };
  return grantsFrom(claims).grants;
}

/** The plainest matcher there is, to compare with. */
function reference(pattern: string, text: string): boolean {
  if (pattern === "") return text === "";
  if (pattern[0] !== "*") {
    return pattern[0] === text[0] && reference(pattern.slice(1), text.slice(1));
  }
  for (let skip = 0; skip <= text.length; skip++) {
    if (reference(pattern.slice(1), text.slice(skip))) return true;
  }
  return false;
}

Deno.test("a star matches any run, slashes included", () => {
  const stream = grants("stream.publish:stream:t1/*/events");
  assertEquals(stream.allows("stream.publish", "stream:t1/default/events"), true);
  assertEquals(stream.allows("stream.publish", "stream:t1/a/b/events"), true);
  assertEquals(stream.allows("stream.publish", "stream:t1/default/events2"), false);
  assertEquals(stream.allows("stream.publish", "stream:t2/default/events"), false);
  assertEquals(stream.allows("stream.subscribe", "stream:t1/default/events"), false);
  const all = grants("cache.read:*");
  assertEquals(all.allows("cache.read", "cache:t1/ns/c"), true);
  assertEquals(all.allows("cache.write", "cache:t1/ns/c"), false);
});

Deno.test("nothing else is special, and case counts", () => {
  const exact = grants("cache.read:cache:t1/ns/a.c", "cache.read:cache:t1/ns/[x]?");
  assertEquals(exact.allows("cache.read", "cache:t1/ns/abc"), false);
  assertEquals(exact.allows("cache.read", "cache:t1/ns/A.c"), false);
  assertEquals(exact.allows("cache.read", "cache:t1/ns/a.c"), true);
  assertEquals(exact.allows("cache.read", "cache:t1/ns/[x]?"), true);
});

Deno.test("subscribe includes consuming, manage includes managing, and no more", () => {
  const both = grants("stream.subscribe:stream:t1/a/s", "stream.manage:stream:t1/b/s");
  assertEquals(both.allows("group.consume", "stream:t1/a/s"), true);
  assertEquals(both.allows("group.manage", "stream:t1/a/s"), false);
  assertEquals(both.allows("group.manage", "stream:t1/b/s"), true);
  assertEquals(both.allows("group.consume", "stream:t1/b/s"), false);
  assertEquals(both.allows("stream.publish", "stream:t1/b/s"), false);
  const group = grants("group.consume:stream:t1/a/s", "group.manage:stream:t1/a/s");
  assertEquals(group.allows("stream.subscribe", "stream:t1/a/s"), false);
  assertEquals(group.allows("stream.manage", "stream:t1/a/s"), false);
});

Deno.test("a permission that means nothing is counted and takes nothing away", () => {
  const { grants, unknown } = grantsFrom({
    tenant: "t1",
    subject: "p",
    expiresAtSeconds: 1,
    permissions: ["node.view:cluster:*", "x", "", "cache.read:", ":o", "cache.read:cache:t1/n/c"],
  });
  assertEquals(unknown, 5);
  assertEquals(grants.allows("cache.read", "cache:t1/n/c"), true);
  assertEquals(grants.allows("node.view", "cluster:*"), false);
  assertEquals(grants.allows("", "o"), false);
});

Deno.test("remembered answers are the same answers, past the bound too", () => {
  const one = grants("stream.publish:stream:t1/n/s1*");
  for (let round = 0; round < 2; round++) {
    for (let index = 0; index < 600; index++) {
      const object = `stream:t1/n/s${index}`;
      const expected = String(index).startsWith("1");
      assertEquals(one.allows("stream.publish", object), expected, object);
    }
  }
  const long = `stream:t1/n/s1${"x".repeat(100_000)}`;
  assertEquals([one.allows("stream.publish", long), one.allows("stream.publish", long)], [
    true,
    true,
  ]);
});

Deno.test("the matcher agrees with the plainest one", () => {
  const text = fc.string({ unit: fc.constantFrom("a", "b", "/"), maxLength: 8 });
  const pattern = fc.string({ unit: fc.constantFrom("a", "b", "/", "*"), maxLength: 7 });
  fc.assert(
    fc.property(pattern, text, (glob, object) => {
      assertEquals(globMatches(glob, object), reference(glob, object), `${glob} ${object}`);
    }),
    { numRuns: 2000 },
  );
});
