// Remembered verdicts: their bounds and when they end.

import { assertEquals } from "@std/assert";
import type { Grants } from "./grants.ts";
import type { KeySet } from "./key_set.ts";
import { Verdicts } from "./verdicts.ts";

const KEYS: KeySet = { keys: [], malformed: 0, fingerprint: "" };
const GRANTS: Grants = {
  tenant: "t",
  subject: "s",
  expiresAtSeconds: 100,
  allows: () => false,
};

Deno.test("the verdict used longest ago goes first", () => {
  const verdicts = new Verdicts(2, 1000);
  verdicts.add("t", "a", KEYS, GRANTS);
  verdicts.add("t", "b", KEYS, GRANTS);
  verdicts.find("t", "a", KEYS, 0);
  verdicts.add("t", "c", KEYS, GRANTS);
  assertEquals(verdicts.find("t", "a", KEYS, 0), GRANTS);
  assertEquals(verdicts.find("t", "b", KEYS, 0), null);
  assertEquals(verdicts.find("t", "c", KEYS, 0), GRANTS);
});

Deno.test("large tokens are bounded in bytes as well", () => {
  const verdicts = new Verdicts(100, 1000);
  for (let index = 0; index < 50; index++) {
    verdicts.add("t", `${index}`.padEnd(300, "x"), KEYS, GRANTS);
  }
  assertEquals(verdicts.count, 3);
  verdicts.add("t", "y".repeat(2000), KEYS, GRANTS);
  assertEquals(verdicts.count, 0, "one that never fits is not kept");
});

Deno.test("an ended verdict and one of other keys are dropped", () => {
  const verdicts = new Verdicts(100, 1000);
  verdicts.add("t", "a", KEYS, GRANTS);
  assertEquals(verdicts.find("t", "a", KEYS, 160), GRANTS);
  assertEquals(verdicts.find("t", "a", KEYS, 160.5), null);
  assertEquals(verdicts.count, 0);
  verdicts.add("t", "a", KEYS, GRANTS);
  assertEquals(verdicts.find("t", "a", { ...KEYS }, 0), null);
  assertEquals(verdicts.count, 0);
  verdicts.add("t", "a", KEYS, GRANTS);
  assertEquals(verdicts.find("ta", "", KEYS, 0), null);
});
