// Both ways of converting, the loop and the runtime's, accept the same one spelling of all bytes.

import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import { base64Length, decodeBase64, encodeBase64 } from "./base64.ts";

/** Sizes around the groups of three and around where the runtime's conversion takes over. */
const bytes: fc.Arbitrary<Uint8Array> = fc.oneof(
  fc.uint8Array({ maxLength: 10 }),
  fc.uint8Array({ minLength: 250, maxLength: 262 }),
  fc.uint8Array({ minLength: 760, maxLength: 776 }),
  fc.uint8Array({ minLength: 1016, maxLength: 1032, size: "max" }),
);
const LONG = "QUJD".repeat(300);

const decodeText = (text: string): Uint8Array | null => {
  // The text lies inside a larger buffer, as a value lies inside a message.
  const around = new TextEncoder().encode(`??${text}??`);
  return decodeBase64(around, 2, around.length - 2);
};

Deno.test("bytes are written as the runtime writes them and read back", () => {
  fc.assert(fc.property(bytes, fc.nat(5), (value, at) => {
    const into = new Uint8Array(at + base64Length(value.length) + 3).fill(0x2a);
    const end = encodeBase64(value, into, at);
    assertEquals(end, at + base64Length(value.length));
    assertEquals(new TextDecoder().decode(into.subarray(at, end)), value.toBase64());
    // Nothing outside was touched.
    assert(into.every((byte, index) => (index >= at && index < end) || byte === 0x2a));
    const back = decodeBase64(into, at, end);
    assert(back !== null && back.toHex() === value.toHex());
    assertEquals(back.buffer === into.buffer, false);
  }));
});

Deno.test("what is not canonical is refused, short or long", () => {
  const bad = ["A", "AA", "AAA", "A===", "====", "=", "AA=A", "A=AA", "=AAA", "AAAA=", "AAAA===="];
  bad.push("AB==", "AAB=", "AA==AAAA", "A-==", "A_A=", "A A=", "AA =", " AAAA", "AAAA ", "AA\n==");
  bad.push("AAA\u0000", "AAA\u0080", "AAAé", "A%3D", "QUI", "QUJ=", "QR==", "\n\n\n\n", "    ");
  bad.push("QUJD    ", "QU  JD  ", "AA= =", "AA\t\t\t\t==");
  for (const text of bad) {
    assertEquals(decodeText(text), null, JSON.stringify(text));
    assertEquals(decodeText(LONG + text), null, `long, then ${JSON.stringify(text)}`);
  }
  for (const text of ["-", "_", " ", "=", "\n", "\u00ff"]) {
    assertEquals(decodeText(LONG.slice(0, 500) + text + LONG.slice(501)), null);
  }
});

Deno.test("every byte value in every place is a letter or refused", () => {
  const letters = new Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/");
  for (const length of [8, LONG.length]) {
    for (let place = 0; place < 4; place++) {
      for (let byte = 0; byte < 256; byte++) {
        const text = new Uint8Array(length).fill(0x41);
        text[4 + place] = byte;
        const accepted = decodeBase64(text, 0, length) !== null;
        const padding = byte === 0x3d && length === 8 && place === 3;
        assertEquals(accepted, letters.has(String.fromCharCode(byte)) || padding, `${byte}`);
      }
    }
  }
});

Deno.test("any text is read as a strict reference reads it", () => {
  const unit = fc.constantFrom(..."ABQgw+/019==-_ \n");
  const text = fc.oneof(
    fc.string({ unit, maxLength: 12 }),
    fc.string({ unit, maxLength: 12 }).map((tail) => LONG + tail),
  );
  fc.assert(
    fc.property(text, (input) => {
      let expected: string | null = null;
      // Strict: only what an encoder would have written.
      if (/^[A-Za-z0-9+/]*={0,2}$/.test(input)) {
        const value = new TextEncoder().encode(input).length % 4 === 0
          ? decodeLoosely(input)
          : null;
        if (value !== null && value.toBase64() === input) expected = value.toHex();
      }
      assertEquals(decodeText(input)?.toHex() ?? null, expected, input);
    }),
    { numRuns: 2000 },
  );
});

function decodeLoosely(text: string): Uint8Array | null {
  try {
    return Uint8Array.fromBase64(text);
  } catch {
    return null;
  }
}
