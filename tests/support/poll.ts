// Waiting in tests: ask again until it holds, with a generous deadline, and say what was seen last.
// Nothing here measures speed; a deadline only turns a hang into a failure.

/** What `poll` throws when the deadline passes. */
export class PollTimeout extends Error {
  override readonly name = "PollTimeout";
  readonly code = "poll_timeout";
}

/** How long to ask and how often. */
export interface PollOptions {
  /** Milliseconds until it fails; default 30 000. */
  readonly deadlineMs?: number;
  /** Milliseconds between questions; default 20. */
  readonly everyMs?: number;
  /** What is waited for, for the failure's message. */
  readonly what?: string;
}

/** Waits `ms` milliseconds. */
export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/**
 * Calls `ask` until it answers anything but `undefined`, `null` or `false`, and answers that.
 * An error that `ask` throws counts as "not yet" and is told when time is up.
 *
 * @throws {PollTimeout} when the deadline passed
 */
export async function poll<T>(
  ask: () => T | Promise<T>,
  options: PollOptions = {},
): Promise<Exclude<T, undefined | null | false>> {
  const { deadlineMs = 30_000, everyMs = 20, what = "the condition" } = options;
  const deadline = performance.now() + deadlineMs;
  let last: unknown;
  for (;;) {
    try {
      last = await ask();
      if (last !== undefined && last !== null && last !== false) {
        return last as Exclude<T, undefined | null | false>;
      }
    } catch (error) {
      last = error;
    }
    if (performance.now() >= deadline) {
      throw new PollTimeout(`${what} did not hold within ${deadlineMs} ms; last: ${String(last)}`);
    }
    await sleep(everyMs);
  }
}

/** Settles like `promise`, or fails after `deadlineMs` (default 30 000) naming `what`. */
export async function within<T>(
  promise: Promise<T>,
  what: string,
  deadlineMs = 30_000,
): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new PollTimeout(`${what} took more than ${deadlineMs} ms`)),
      deadlineMs,
    );
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
