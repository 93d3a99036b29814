// The one failure of this room: bytes that are not what they should be. Whoever reads them decides
// what becomes of the stream (spec/wire.md §10).

/** What is wrong with the bytes (spec/wire.md §11). */
export type WireErrorCode =
  | "invalid_magic"
  | "unsupported_version"
  | "unknown_flags"
  | "too_large"
  | "incomplete"
  | "malformed"
  | "malformed_body";

/** What an unreadable payload still told. */
export interface WireErrorDetail {
  /** Request id of an acked publish whose prefix was readable (`malformed_body`). */
  readonly requestId?: bigint;
  /** Ack mode of that publish. */
  readonly ackMode?: 1 | 2;
  /** A JSON message of a type that this version does not know. */
  readonly unknownType?: { readonly requestType: string; readonly requestId?: bigint };
}

/** Bytes that cannot be read. `code` is the contract, `message` is prose. */
export class WireError extends Error {
  /** Name of the class. */
  override readonly name = "WireError";
  /** As `WireErrorDetail.requestId`. */
  readonly requestId: bigint | undefined;
  /** As `WireErrorDetail.ackMode`. */
  readonly ackMode: 1 | 2 | undefined;
  /** As `WireErrorDetail.unknownType`. */
  readonly unknownType: WireErrorDetail["unknownType"];

  /** `detail`: what the payload told before it became unreadable. */
  constructor(readonly code: WireErrorCode, message: string, detail: WireErrorDetail = {}) {
    super(message);
    this.requestId = detail.requestId;
    this.ackMode = detail.ackMode;
    this.unknownType = detail.unknownType;
  }
}
