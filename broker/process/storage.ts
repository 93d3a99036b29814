// Durable storage of one broker process: opened and looked through before anything is served, with
// its timers, and closed after everything else. Rule: a log that would not open ends the start,
// with a line for each that says where (spec/storage.md §10.1).

import { LogStore, RealDisk, StorageError } from "@felix/storage";
import { resolve } from "node:path";
import type { BrokerSettings } from "../config/settings.ts";
import type { BrokerLog } from "../log/broker_log.ts";

/** Storage that is open. */
export interface OpenStorage {
  readonly store: LogStore;
  /** Flushes and closes; answers whether all went well. */
  close(): Promise<boolean>;
}

/** Opens the storage that the settings name; `null` when the broker must not start. */
export async function openStorage(
  settings: BrokerSettings,
  directory: string,
  log: BrokerLog,
): Promise<OpenStorage | null> {
  const root = resolve(directory);
  let store: LogStore;
  try {
    store = await LogStore.open({
      disk: new RealDisk(),
      root,
      settings: {
        fsync: settings.fsyncMode,
        segmentBytes: settings.segmentBytes,
        indexSpacingBytes: settings.indexSpacingBytes,
        maxRecordsPerRead: settings.maxRecordsPerRead,
        verifyAllOnOpen: settings.verifyAllOnOpen,
        repairChecksumTail: settings.repairChecksumTail,
      },
      nowMicros: () => Date.now() * 1000,
      warn: (what) => log.warn(what, { code: "storage" }),
      owner: `pid ${Deno.pid}, since ${new Date().toISOString()}`,
    });
  } catch (error) {
    if (!(error instanceof StorageError)) throw error;
    log.error("storage cannot be opened", {
      setting: "FELIX_DURABLE_STORAGE_DIR",
      directory: root,
      code: error.code,
      error,
    });
    return null;
  }
  const started = performance.now();
  const refusals = await store.verify();
  for (const { directory, error } of refusals) {
    log.error("a log is damaged and would not open", { directory, code: error.code, error });
  }
  if (refusals.length > 0) {
    await store.close();
    return null;
  }
  log.info("storage opened", {
    directory: root,
    fsync: settings.fsyncMode,
    verified_ms: Math.round(performance.now() - started),
  });
  const stopTimers = startTimers(store, settings);
  return {
    store,
    async close() {
      stopTimers();
      try {
        await store.close();
        return true;
      } catch (error) {
        log.error("storage did not close well", { code: "storage", error });
        return false;
      }
    },
  };
}

function startTimers(store: LogStore, settings: BrokerSettings): () => void {
  const timers: ReturnType<typeof setInterval>[] = [];
  const every = (ms: number, pass: () => Promise<void>): void => {
    let running = false;
    timers.push(setInterval(async () => {
      if (running) return;
      running = true;
      await pass();
      running = false;
    }, ms));
  };
  if (settings.fsyncMode === "periodic") every(settings.fsyncIntervalMs, () => store.flush());
  if (settings.retentionBytes !== null || settings.retentionSeconds !== null) {
    every(settings.retentionIntervalSeconds * 1000, () => store.retain());
  }
  return () => timers.forEach((timer) => clearInterval(timer));
}
