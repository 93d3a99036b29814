// Rows of the bad-input table about headers, flags, authentication and JSON that cannot be read
// (spec/wire.md §2.3, §3.1, §4.1 and §10).

import { type BadInputRow, error, invalid, plainError } from "./bad_input_row.ts";
import { frame, json, publish, publishBody, uint, utf8 } from "./frames.ts";
import { FULL_OFFER, NO_OFFER } from "./raw_client.ts";

const topology = json({ type: "topology" });

const headers: BadInputRow[] = [
  { name: "bad magic", offer: FULL_OFFER, send: frame(0, utf8("{}"), { magic: 0x464c5832 }) },
  { name: "bad version", offer: FULL_OFFER, send: frame(0, utf8("{}"), { version: 2 }) },
  {
    name: "oversize length, on the header alone",
    offer: FULL_OFFER,
    send: frame(0, new Uint8Array(0), { length: 16 * 1024 * 1024 + 1 }),
  },
  {
    name: "largest length there is",
    offer: FULL_OFFER,
    send: frame(0, new Uint8Array(0), { length: 0xffff_ffff }),
  },
  { name: "bad magic before auth", offer: null, send: utf8("GET / HTTP/1.1\r\n\r\n") },
  {
    name: "payload over 64 KiB before auth, on the header alone",
    offer: null,
    send: frame(0, new Uint8Array(0), { length: 65_537 }),
  },
  {
    name: "FIN inside a header",
    offer: FULL_OFFER,
    send: topology.subarray(0, 7),
    finish: true as const,
  },
  {
    name: "FIN inside a payload",
    offer: FULL_OFFER,
    send: topology.subarray(0, 15),
    finish: true as const,
  },
  { name: "FIN at once", offer: null, send: new Uint8Array(0), finish: true as const },
].map((row) => ({ ...row, answers: [], then: "ends" as const }));

const flags: BadInputRow[] = [
  {
    name: "unknown flag bit; its payload is consumed",
    offer: FULL_OFFER,
    send: frame(0x8000, utf8("whatever this is")),
    answers: [error("unsupported frame flags", "invalid_request")],
    then: "goes on",
  },
  {
    name: "unknown flag bit beside a known one",
    offer: NO_OFFER,
    send: frame(0x8001, publishBody({ payloads: ["x"] })),
    answers: [plainError("unsupported frame flags")],
    then: "goes on",
  },
  ...[0x0002, 0x0004, 0x0010].map((bit): BadInputRow => ({
    name: `base flag ${bit} from a client`,
    offer: FULL_OFFER,
    send: frame(bit, uint(0, 8)),
    answers: [invalid],
    then: "ends",
  })),
  {
    name: "modifier without its base",
    offer: FULL_OFFER,
    send: frame(0x0008, uint(0, 8)),
    answers: [invalid],
    then: "ends",
  },
];

const authentication: BadInputRow[] = [
  {
    name: "JSON request before auth",
    offer: null,
    send: topology,
    answers: [{ json: { type: "error", message: "auth required" } }],
    then: "ends",
  },
  {
    name: "binary publish before auth",
    offer: null,
    send: publish({ payloads: ["x"], requestId: 1 }),
    answers: [{ json: { type: "error", message: "auth required" } }],
    then: "ends",
  },
  {
    name: "auth refused",
    offer: null,
    send: json({ type: "auth", tenant_id: "t1", token: "no.such.token", ...FULL_OFFER }),
    answers: [error("auth failed", "unauthenticated")],
    then: "ends",
  },
  {
    name: "auth refused, no codes offered",
    offer: null,
    send: json({ type: "auth", tenant_id: "t1", token: "no.such.token", client_flags: 1 }),
    answers: [plainError("auth failed")],
    then: "ends",
  },
  {
    name: "auth for a tenant that cannot be one",
    offer: null,
    send: json({ type: "auth", tenant_id: "..", token: "x", ...FULL_OFFER }),
    answers: [error("auth failed", "unauthenticated")],
    then: "ends",
  },
  {
    name: "second auth",
    offer: FULL_OFFER,
    send: json({ type: "auth", tenant_id: "t1", token: "x" }),
    answers: [error("auth already established", "invalid_request")],
    then: "ends",
  },
];

const scope = '"tenant_id":"t1","namespace":"default","stream":"events"';

const malformed: BadInputRow[] = [
  ["not JSON", "nonsense"],
  ["empty payload", ""],
  ["an array", '["topology"]'],
  ["no type", '{"tenant_id":"t1"}'],
  ["type is no string", '{"type":7}'],
  ["bytes after the object", '{"type":"topology"} x'],
  ["missing member", '{"type":"stream_shards","tenant_id":"t1"}'],
  [
    "bad base64",
    '{"type":"publish","tenant_id":"t1","namespace":"default","stream":"events","payload":"%%"}',
  ],
  [
    "base64 without padding",
    '{"type":"publish","tenant_id":"t1","namespace":"default","stream":"events","payload":"eA"}',
  ],
  [
    "number out of range",
    `{"type":"subscribe",${scope},"shard":4294967296}`,
  ],
  [
    "number with a fraction",
    `{"type":"stream_shards",${scope},"request_id":1.0}`,
  ],
  [
    "negative number",
    `{"type":"stream_shards",${scope},"request_id":-1}`,
  ],
  [
    "word outside its list",
    '{"type":"subscribe","tenant_id":"t1","namespace":"default","stream":"events","start":"soon"}',
  ],
  ["128 levels of nesting", `{"type":"topology","x":${"[".repeat(127)}${"]".repeat(127)}}`],
].map(([name, text]): BadInputRow => ({
  name: `malformed JSON: ${name}`,
  offer: FULL_OFFER,
  send: json(text!),
  answers: [invalid],
  then: "ends",
}));

/** Rows about what cannot be read, in the order of the table. */
export const BAD_FRAME_ROWS: readonly BadInputRow[] = [
  ...headers,
  ...flags,
  ...authentication,
  ...malformed,
];
