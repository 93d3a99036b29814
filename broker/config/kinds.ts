// The kinds of value that several settings share, with their ranges.

import type { SettingKind } from "./setting.ts";

const MAX_COUNT = 2 ** 31 - 1;

/** True or false. */
export const BOOLEAN: SettingKind = { type: "boolean" };
/** What a full queue does. */
export const POLICY: SettingKind = {
  type: "choice",
  values: ["drop_new", "drop_old", "block"],
};
/** A number of things, 1 or more. */
export const COUNT: SettingKind = { type: "integer", min: 1, max: MAX_COUNT };
/** A number of things, or none. */
export const COUNT_OR_ZERO: SettingKind = { type: "integer", min: 0, max: MAX_COUNT };
/** A time in milliseconds; the upper end is what a timer can hold. */
export const MILLISECONDS: SettingKind = { type: "integer", min: 1, max: MAX_COUNT };
/** A time in milliseconds, or none. */
export const MILLISECONDS_OR_ZERO: SettingKind = { type: "integer", min: 0, max: MAX_COUNT };
/** A size in bytes, up to 1 TiB. */
export const BYTES: SettingKind = { type: "bytes", min: 1, max: 2 ** 40 };
/** A size in bytes, or no limit. */
export const BYTES_OR_ZERO: SettingKind = { type: "bytes", min: 0, max: 2 ** 40 };
/** A file or directory. */
export const PATH: SettingKind = { type: "path" };
/** Any text. */
export const TEXT: SettingKind = { type: "text" };
