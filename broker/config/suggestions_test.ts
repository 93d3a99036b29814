// What an unknown name was probably meant to be.

import { assertEquals } from "@std/assert";
import fc from "fast-check";
import { editDistance, suggest } from "./suggestions.ts";

Deno.test("missing segments come first, then small mistakes", () => {
  const known = ["FELIX_A_B_C", "FELIX_A_C", "FELIX_A_D"];
  assertEquals(suggest("FELIX_A_C", ["FELIX_A_B_C", "FELIX_A_D"]), ["FELIX_A_B_C", "FELIX_A_D"]);
  assertEquals(suggest("FELIX_C_A", known), ["FELIX_A_C", "FELIX_A_D"], "two letters");
  assertEquals(suggest("FELIX_Q", known), []);
  assertEquals(suggest("FELIX", known), []);
});

Deno.test("the edit distance is exact up to its limit", () => {
  assertEquals(editDistance("kitten", "sitting", 3), 3);
  assertEquals(editDistance("kitten", "sitting", 2) > 2, true);
  fc.assert(fc.property(fc.string({ maxLength: 8 }), fc.string({ maxLength: 8 }), (a, b) => {
    const distance = editDistance(a, b, 20);
    assertEquals(distance, editDistance(b, a, 20));
    assertEquals(distance === 0, a === b);
    assertEquals(distance <= Math.max(a.length, b.length), true);
    const limited = editDistance(a, b, 2);
    assertEquals(limited <= 2 ? limited : 3, distance <= 2 ? distance : 3);
  }));
});
