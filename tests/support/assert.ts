// The names of @std/assert over node:assert/strict, for places where JSR cannot be reached.
// Only what the tests use is here; `deno.json` maps `@std/assert` to this file.

import assertStrict from "node:assert/strict";

/** Fails unless `value` is truthy. */
export function assert(value: unknown, message?: string): asserts value {
  assertStrict.ok(value, message);
}

/** Deep equality of two values, `Uint8Array`s by content. */
export function assertEquals<T>(actual: T, expected: T, message?: string): void {
  assertStrict.deepStrictEqual(actual, expected, message);
}

/** Fails if the two values are deeply equal. */
export function assertNotEquals<T>(actual: T, expected: T, message?: string): void {
  assertStrict.notDeepStrictEqual(actual, expected, message);
}

/** Identity (`Object.is`). */
export function assertStrictEquals<T>(actual: T, expected: T, message?: string): void {
  assertStrict.strictEqual(actual, expected, message);
}

/** Fails on `null` and `undefined`. */
export function assertExists<T>(
  value: T,
  message?: string,
): asserts value is NonNullable<T> {
  assertStrict.ok(value !== null && value !== undefined, message ?? "value is missing");
}

// deno-lint-ignore no-explicit-any -- any constructor, abstract ones included
type ErrorClass<E extends Error> = abstract new (...args: any[]) => E;

/** Fails unless `value` is an instance of `type`. */
export function assertInstanceOf<E>(
  value: unknown,
  // deno-lint-ignore no-explicit-any -- any constructor, abstract ones included
  type: abstract new (...args: any[]) => E,
  message?: string,
): asserts value is E {
  assertStrict.ok(
    value instanceof type,
    message ?? `expected an instance of ${type.name}, got ${String(value)}`,
  );
}

/** Fails unless `text` contains `part`. */
export function assertStringIncludes(text: string, part: string, message?: string): void {
  assertStrict.ok(text.includes(part), message ?? `"${text}" does not contain "${part}"`);
}

/** Fails unless `text` matches `pattern`. */
export function assertMatch(text: string, pattern: RegExp, message?: string): void {
  assertStrict.match(text, pattern, message);
}

/** Fails unless `actual > expected`. */
export function assertGreater<T>(actual: T, expected: T, message?: string): void {
  assertStrict.ok(actual > expected, message ?? `${actual} is not greater than ${expected}`);
}

/** Fails unless `actual >= expected`. */
export function assertGreaterOrEqual<T>(actual: T, expected: T, message?: string): void {
  assertStrict.ok(actual >= expected, message ?? `${actual} is less than ${expected}`);
}

/** Fails unless `actual < expected`. */
export function assertLess<T>(actual: T, expected: T, message?: string): void {
  assertStrict.ok(actual < expected, message ?? `${actual} is not less than ${expected}`);
}

/** Fails unless `actual <= expected`. */
export function assertLessOrEqual<T>(actual: T, expected: T, message?: string): void {
  assertStrict.ok(actual <= expected, message ?? `${actual} is greater than ${expected}`);
}

function checkError<E extends Error>(error: unknown, type?: ErrorClass<E>, part?: string): E {
  if (type !== undefined) assertInstanceOf(error, type);
  else assertInstanceOf(error, Error);
  if (part !== undefined) assertStringIncludes((error as Error).message, part);
  return error as E;
}

/** Calls `fn`, fails unless it throws (an instance of `type`, its message containing `part`). */
export function assertThrows<E extends Error = Error>(
  fn: () => unknown,
  type?: ErrorClass<E>,
  part?: string,
): E {
  try {
    fn();
  } catch (error) {
    return checkError(error, type, part);
  }
  throw new assertStrict.AssertionError({ message: "expected the function to throw" });
}

/** Awaits `fn()`, fails unless it rejects (with a `type`, its message containing `part`). */
export async function assertRejects<E extends Error = Error>(
  fn: () => Promise<unknown>,
  type?: ErrorClass<E>,
  part?: string,
): Promise<E> {
  try {
    await fn();
  } catch (error) {
    return checkError(error, type, part);
  }
  throw new assertStrict.AssertionError({ message: "expected the promise to reject" });
}

/** Always fails. */
export function fail(message = "failed"): never {
  throw new assertStrict.AssertionError({ message });
}
