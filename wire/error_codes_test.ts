// Numbers and names of spec/wire.md §7, and how unknown ones read.

import { assertEquals } from "@std/assert";
import {
  codeName,
  codeNumber,
  DEFAULT_RETRY,
  retryByte,
  retryFromByte,
  retryFromText,
} from "./error_codes.ts";

/** The table of spec/wire.md §7.2: number, code, default class. */
const TABLE = [
  [1, "unauthenticated", "fatal"],
  [2, "forbidden", "fatal"],
  [3, "not_found", "retry_after"],
  [4, "invalid_request", "fatal"],
  [5, "shard_unavailable", "retry"],
  [6, "not_leader", "redirect"],
  [7, "quorum_timeout", "outcome_unknown"],
  [8, "leadership_lost", "outcome_unknown"],
  [9, "unacknowledged", "outcome_unknown"],
  [10, "overloaded", "retry_after"],
  [11, "limit_exceeded", "fatal"],
  [12, "draining", "retry"],
  [13, "internal", "outcome_unknown"],
  [14, "storage", "outcome_unknown"],
  [15, "stale_claim", "retry"],
  [16, "revoked", "fatal"],
  [17, "stale_width", "retry"],
  [18, "feature_not_enabled", "fatal"],
  [19, "stream_has_commits", "fatal"],
] as const;

Deno.test("every code has its number and its class", () => {
  assertEquals(Object.keys(DEFAULT_RETRY).length, TABLE.length);
  for (const [number, code, retry] of TABLE) {
    assertEquals([codeNumber(code), codeName(number), DEFAULT_RETRY[code]], [number, code, retry]);
  }
});

Deno.test("an unknown number has a name that leads back to it", () => {
  for (const number of [0, 20, 99, 999, 65535]) {
    assertEquals(codeName(number), `code_${number}`);
    if (number !== 0) assertEquals(codeNumber(`code_${number}`), number);
  }
  // Known numbers have one name, and what is no number of 16 bits has none.
  for (const code of ["code_0", "code_5", "code_65536", "code_", "code_1x", "", "toString"]) {
    assertEquals(codeNumber(code), undefined, code);
  }
});

Deno.test("retry classes have their bytes; unknown ones are fatal", () => {
  const classes = ["retry", "retry_after", "redirect", "outcome_unknown", "fatal"] as const;
  for (const [index, retry] of classes.entries()) {
    assertEquals([retryByte(retry), retryFromByte(index + 1)], [index + 1, retry]);
    assertEquals(retryFromText(retry), retry);
  }
  for (const byte of [0, 6, 255]) assertEquals(retryFromByte(byte), "fatal");
  for (const word of [undefined, "", "Retry", "later"]) assertEquals(retryFromText(word), "fatal");
});
