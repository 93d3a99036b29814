// What a token's permissions allow (spec/auth.md §9.2): a permission is `action:object`, and `*` in
// its object stands for any run of bytes, `/` included. A permission with an action that this
// broker does not know grants nothing and takes nothing from the others (spec/README.md,
// decision 6).

import type { Grants } from "./grants.ts";

/** Actions that mean something to a broker (spec/auth.md §8.2). */
const KNOWN_ACTIONS: ReadonlySet<string> = new Set([
  "rbac.view",
  "rbac.policy.manage",
  "rbac.assignment.manage",
  "tenant.manage",
  "ns.manage",
  "stream.manage",
  "cache.manage",
  "stream.publish",
  "stream.subscribe",
  "cache.read",
  "cache.write",
  "group.consume",
  "group.manage",
]);

/** Actions that a grant of another action includes. */
const IMPLIED_BY: Readonly<Record<string, string>> = {
  "group.consume": "stream.subscribe",
  "group.manage": "stream.manage",
};

const MEMO_ENTRIES = 256;
const MEMO_OBJECT_LENGTH = 512;

/** Identity and permissions of a verified token. */
export interface GrantClaims {
  readonly tenant: string;
  readonly subject: string;
  readonly expiresAtSeconds: number;
  readonly permissions: readonly string[];
}

/** Grants, and how many permissions meant nothing to this broker. */
export interface ParsedGrants {
  readonly grants: Grants;
  readonly unknown: number;
}

/** Compiles the permissions of a token. */
export function grantsFrom(claims: GrantClaims): ParsedGrants {
  const patterns = new Map<string, ObjectPatterns>();
  let unknown = 0;
  for (const permission of claims.permissions) {
    const colon = permission.indexOf(":");
    const action = permission.slice(0, Math.max(0, colon));
    const object = permission.slice(colon + 1);
    if (!KNOWN_ACTIONS.has(action) || object === "") {
      unknown++;
      continue;
    }
    const known = patterns.get(action) ?? new ObjectPatterns();
    known.add(object);
    patterns.set(action, known);
  }
  return { grants: new TokenGrants(claims, patterns), unknown };
}

class TokenGrants implements Grants {
  readonly tenant: string;
  readonly subject: string;
  readonly expiresAtSeconds: number;
  readonly #patterns: ReadonlyMap<string, ObjectPatterns>;
  readonly #memo = new Map<string, Map<string, boolean>>();

  constructor(claims: GrantClaims, patterns: ReadonlyMap<string, ObjectPatterns>) {
    this.tenant = claims.tenant;
    this.subject = claims.subject;
    this.expiresAtSeconds = claims.expiresAtSeconds;
    this.#patterns = patterns;
  }

  allows(action: string, object: string): boolean {
    const memo = this.#memo.get(action);
    const known = memo?.get(object);
    if (known !== undefined) return known;
    const allowed = this.#matches(action, object);
    this.#remember(memo, action, object, allowed);
    return allowed;
  }

  #matches(action: string, object: string): boolean {
    if (this.#patterns.get(action)?.matches(object)) return true;
    const broader = IMPLIED_BY[action];
    return broader !== undefined && (this.#patterns.get(broader)?.matches(object) ?? false);
  }

  #remember(
    memo: Map<string, boolean> | undefined,
    action: string,
    object: string,
    allowed: boolean,
  ): void {
    if (object.length > MEMO_OBJECT_LENGTH || !KNOWN_ACTIONS.has(action)) return;
    const table = memo ?? new Map<string, boolean>();
    if (memo === undefined) this.#memo.set(action, table);
    if (table.size >= MEMO_ENTRIES) table.clear();
    table.set(object, allowed);
  }
}

/** The objects that the grants of one action name. */
class ObjectPatterns {
  readonly #exact = new Set<string>();
  /** Literal pieces between the stars, two or more. */
  readonly #globs: string[][] = [];

  add(pattern: string): void {
    if (pattern.includes("*")) this.#globs.push(pattern.split("*"));
    else this.#exact.add(pattern);
  }

  matches(object: string): boolean {
    return this.#exact.has(object) || this.#globs.some((pieces) => matchesPieces(pieces, object));
  }
}

/**
 * Whether `pattern` matches `text`: `*` is any run of bytes, nothing else is special. Both are well
 * formed, so comparing UTF-16 units and comparing UTF-8 bytes are the same.
 */
export function globMatches(pattern: string, text: string): boolean {
  return pattern.includes("*") ? matchesPieces(pattern.split("*"), text) : pattern === text;
}

/** First piece at the start, last piece at the end, the others leftmost in between. */
function matchesPieces(pieces: readonly string[], text: string): boolean {
  const first = pieces[0]!;
  const last = pieces[pieces.length - 1]!;
  const end = text.length - last.length;
  if (first.length > end || !text.startsWith(first) || !text.endsWith(last)) return false;
  let from = first.length;
  for (let index = 1; index < pieces.length - 1; index++) {
    const piece = pieces[index]!;
    const found = text.indexOf(piece, from);
    if (found < 0 || found + piece.length > end) return false;
    from = found + piece.length;
  }
  return true;
}
