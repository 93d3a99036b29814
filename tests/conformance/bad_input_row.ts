// One row of the bad-input table for streams in both directions (spec/wire.md §10): what a client
// sends after which `auth`, what it must read, and whether the stream goes on. Data, no behaviour.

import type { Offer } from "./raw_client.ts";

/** What comes back: a JSON message (its named members), a failed ack, or nothing. */
export type Expected =
  | { readonly json: Readonly<Record<string, unknown>> }
  | { readonly ack: Readonly<Record<string, unknown>> };

/** One row. */
export interface BadInputRow {
  readonly name: string;
  /** Offer of the `auth` before it; `null` sends none. */
  readonly offer: Offer | null;
  readonly send: Uint8Array;
  /** End this side after sending. */
  readonly finish?: true;
  readonly answers: readonly Expected[];
  readonly then: "goes on" | "ends";
}

/** An `error` as a client that reads codes sees it. */
export const error = (message: string, code: string, retry = "fatal"): Expected => ({
  json: { type: "error", message, code, retry },
});
/** An `error` as a client that reads no codes sees it. */
export const plainError = (message: string): Expected => ({
  json: { type: "error", message, code: undefined, retry: undefined },
});
/** An `error` that says only that the request is invalid. */
export const invalid: Expected = {
  json: { type: "error", code: "invalid_request", retry: "fatal" },
};
