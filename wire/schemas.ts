// The tables of all messages by type. A message that is not here does not exist for this room:
// decoder and encoder know nothing else.

import type { MessageSchema } from "./json_schema.ts";
import { CACHE_MESSAGES } from "./schema_cache.ts";
import { GROUP_MESSAGES } from "./schema_group.ts";
import { PUBLISH_MESSAGES } from "./schema_publish.ts";
import { SESSION_MESSAGES } from "./schema_session.ts";
import { SUBSCRIBE_MESSAGES } from "./schema_subscribe.ts";

/** Every message's table. */
export const SCHEMAS: ReadonlyMap<string, MessageSchema> = new Map(
  [
    ...SESSION_MESSAGES,
    ...PUBLISH_MESSAGES,
    ...SUBSCRIBE_MESSAGES,
    ...CACHE_MESSAGES,
    ...GROUP_MESSAGES,
  ]
    .map((schema) => [schema.type, schema]),
);
