// How late the event loop is: a coarse timer that notes by how much it ran late. It never keeps the
// process alive and costs four turns a second.

import type { Histogram } from "./histogram.ts";

const EVERY_MS = 250;

/** Starts measuring into `lag` (seconds); returns the way to stop. */
export function measureLoopLag(
  lag: Histogram,
  nowMs: () => number = () => performance.now(),
): () => void {
  let expected = nowMs() + EVERY_MS;
  const timer = setInterval(() => {
    const now = nowMs();
    lag.observe(Math.max(0, now - expected) / 1000);
    expected = now + EVERY_MS;
  }, EVERY_MS);
  Deno.unrefTimer(timer);
  return () => clearInterval(timer);
}
