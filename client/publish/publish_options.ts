// What publishing takes and gives (spec/client.md §5). Contradictions are refused here, before a
// call exists.

import { checkTimeout } from "../call_guard.ts";
import { InvalidArgumentError } from "../failure/classes.ts";
import type { AckMode, BytesLike, CallOptions, Offset } from "../types.ts";

/** Settings of `publish` and `publishBatch`. */
export interface PublishOptions extends CallOptions {
  /** Routing key: picks the shard. None: shard 0. */
  readonly key?: BytesLike;
  /** When it resolves; default `perMessage` for one record, `perBatch` for a batch. */
  readonly ack?: AckMode;
  /**
   * `report` (default) never sends a frame again whose outcome is unknown; `atLeastOnce` does until
   * it is acknowledged, and says so in `mayBeDuplicated`.
   */
  readonly delivery?: "report" | "atLeastOnce";
  /** Send again after an answer that says that nothing was applied; default true. */
  readonly retrySafe?: boolean;
}

/** What became of a publish. */
export interface PublishResult {
  /** Offset of the first record (record *i* is at `offset + i`); `null` when not told. */
  readonly offset: Offset | null;
  /** Records in the frame. */
  readonly count: number;
  /** Shard it went to; `null` when the stream's width is unknown. */
  readonly shard: number | null;
  /** Address of the broker that took it. */
  readonly broker: string;
  /** The broker relayed it to the shard's owner. */
  readonly forwarded: boolean;
  /** How often it was sent. */
  readonly attempts: number;
  /** True only after it was sent again with the outcome of an earlier attempt unknown. */
  readonly mayBeDuplicated: boolean;
}

/** Ack modes as the wire numbers them (spec/wire.md §5.3); 0 = no ack prefix. */
export const ACK_BYTE = { none: 0, perMessage: 1, perBatch: 2 } as const satisfies Record<
  AckMode,
  0 | 1 | 2
>;

/** Checks options. @throws {InvalidArgumentError} */
export function checkPublishOptions(
  options: Pick<PublishOptions, "ack" | "delivery" | "timeoutMs">,
  ack: AckMode,
  operation: string,
): void {
  if (!(ack in ACK_BYTE)) {
    throw new InvalidArgumentError({ message: `no such ack mode: ${ack}`, operation });
  }
  const delivery = options.delivery ?? "report";
  if (delivery !== "report" && delivery !== "atLeastOnce") {
    throw new InvalidArgumentError({ message: `no such delivery: ${delivery}`, operation });
  }
  if (ack === "none" && delivery === "atLeastOnce") {
    throw new InvalidArgumentError({
      message: 'ack "none" has no answer, so it cannot be delivered at least once',
      operation,
    });
  }
  checkTimeout(options.timeoutMs, operation);
}
