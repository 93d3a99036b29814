// What tells a running broker to stop or to look at its files again: signals, and the end of
// standard input where a launcher asked for it.

/** What a signal does. */
export interface SignalActions {
  /** SIGTERM, SIGINT. */
  stop(cause: string): void;
  /** SIGHUP. */
  reload(): void;
}

/** Starts to listen; returns the way to stop listening. */
export function onSignals(actions: SignalActions): () => void {
  const handlers: [Deno.Signal, () => void][] = [
    ["SIGINT", () => actions.stop("SIGINT")],
    ["SIGTERM", () => actions.stop("SIGTERM")],
    ["SIGHUP", () => actions.reload()],
  ];
  const added = handlers.filter(([signal, handler]) => {
    try {
      Deno.addSignalListener(signal, handler);
      return true;
    } catch {
      // Not every system has every signal.
      return false;
    }
  });
  return () => added.forEach(([signal, handler]) => Deno.removeSignalListener(signal, handler));
}

/** Calls `ended` once when standard input ends or breaks. */
export async function onStdinEnd(ended: () => void): Promise<void> {
  const bytes = new Uint8Array(256);
  try {
    while (await Deno.stdin.read(bytes) !== null) {
      // What a launcher writes means nothing.
    }
  } catch {
    // As good as its end.
  }
  ended();
}
