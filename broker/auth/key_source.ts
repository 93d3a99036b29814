// Where the verifier gets a tenant's keys from. Two implementations: a file for all tenants and a
// URL per tenant. One rule for both: a set stays the same object until its keys change, so whoever
// remembers something that depends on keys compares objects.

import { AuthRefused } from "./grants.ts";
import { KeySetError, parseKeySet } from "./key_set.ts";
import type { KeySet } from "./key_set.ts";
import type { BrokerLog } from "../log/broker_log.ts";
import type { AuthMetrics } from "../metrics/counters.ts";

/** Two clocks: one that people set and one that only runs forward. */
export interface AuthClock {
  /** Milliseconds since the epoch. */
  wallMs(): number;
  /** Milliseconds since some moment. */
  monotonicMs(): number;
}

/** A source of keys. */
export interface KeySource {
  /** The keys in force if they are at hand; `null`: call `load`. */
  current(tenant: string): KeySet | null;
  /** @throws {AuthRefused} `keys_unavailable`, `no_usable_keys`, `unknown_tenant` */
  load(tenant: string): Promise<KeySet>;
  /**
   * Asks for newer keys after a token named a key that is not in `known`. Resolves with `known`
   * itself when there are none, or when it was asked too recently.
   */
  refresh(tenant: string, known: KeySet): Promise<KeySet>;
}

/** How a key file is looked at. */
export interface KeyFile {
  /** Something that changes when the file does; `null`: there is no file. */
  version(path: string): string | null;
  /** The file's text. */
  read(path: string): string;
}

const CHECK_FILE_MS = 1000;

/** Keys of every tenant from one file, read again when it changes. */
export class FileKeySource implements KeySource {
  readonly #options: FileKeySourceOptions;
  #keys: KeySet | null = null;
  #version: string | null = null;
  #checkedMs = -Infinity;
  #loading: Promise<KeySet> | null = null;

  constructor(options: FileKeySourceOptions) {
    this.#options = options;
  }

  current(_tenant: string): KeySet | null {
    const { clock, file, path } = this.#options;
    const now = clock.monotonicMs();
    if (now - this.#checkedMs < CHECK_FILE_MS) return this.#keys;
    this.#checkedMs = now;
    // A file that is gone or half replaced leaves the keys in force until it is back.
    const version = file.version(path);
    return version === null || version === this.#version ? this.#keys : null;
  }

  load(_tenant: string): Promise<KeySet> {
    this.#loading ??= this.#read().finally(() => this.#loading = null);
    return this.#loading;
  }

  refresh(tenant: string, known: KeySet): Promise<KeySet> {
    const current = this.current(tenant);
    return current === null ? this.load(tenant) : Promise.resolve(current ?? known);
  }

  async #read(): Promise<KeySet> {
    const { file, path, log, metrics } = this.#options;
    try {
      const version = file.version(path);
      const keys = await parseKeySet(file.read(path));
      this.#version = version;
      metrics.keySetLoads++;
      metrics.malformedKeys += keys.malformed;
      if (keys.keys.length === 0) throw new KeySetError("no key in it can be used");
      if (keys.fingerprint !== this.#keys?.fingerprint) {
        this.#keys = keys;
        log.info("token keys loaded", { keys: keys.keys.length, skipped: keys.malformed });
      }
      return this.#keys!;
    } catch (error) {
      metrics.keySetFailures++;
      log.warn("token keys could not be loaded", { path, error: messageOf(error) });
      if (this.#keys !== null) return this.#keys;
      const reason = error instanceof KeySetError ? "no_usable_keys" : "keys_unavailable";
      throw new AuthRefused(reason, "the key file cannot be used", { cause: error });
    }
  }
}

/** Needs of a `FileKeySource`. */
export interface FileKeySourceOptions {
  readonly path: string;
  readonly file: KeyFile;
  readonly clock: AuthClock;
  readonly log: BrokerLog;
  readonly metrics: AuthMetrics;
}

/** Text of an error for a log line. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
