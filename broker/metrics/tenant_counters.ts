// Per-tenant counters with a bound: the first so many tenants get a label, the rest share one.
// The hot path keeps the row it was given; it never looks up a tenant per record.

/** Counters of one tenant (spec/operations.md §9.3). */
export interface TenantRow {
  publishedMessages: number;
  publishedBytes: number;
  deliveredMessages: number;
  deliveredBytes: number;
}

/** Label of the row that tenants past the bound share. */
export const OVERFLOW_TENANT = "_overflow";

/** Rows of tenants, at most `maxTenants` and the shared one. */
export class TenantCounters {
  /** Lookups answered with the shared row. */
  overflowed = 0;
  readonly #rows = new Map<string, TenantRow>();
  readonly #overflow: TenantRow = emptyRow();

  /** `maxTenants`: 0 or more. */
  constructor(readonly maxTenants: number) {}

  /** The row of `tenant`; look it up once per stream or subscription and keep it. */
  row(tenant: string): TenantRow {
    const known = this.#rows.get(tenant);
    if (known !== undefined) return known;
    if (this.#rows.size >= this.maxTenants) {
      this.overflowed++;
      return this.#overflow;
    }
    const row = emptyRow();
    this.#rows.set(tenant, row);
    return row;
  }

  /** Every row with its label, the shared one last and only when it was handed out. */
  *entries(): IterableIterator<[string, TenantRow]> {
    yield* this.#rows;
    if (this.overflowed > 0) yield [OVERFLOW_TENANT, this.#overflow];
  }
}

function emptyRow(): TenantRow {
  return { publishedMessages: 0, publishedBytes: 0, deliveredMessages: 0, deliveredBytes: 0 };
}
