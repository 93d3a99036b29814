// The connections of one kind to one broker. The rule: the first is opened when it is needed,
// another when all open ones are busy, up to the maximum; among open ones the choice goes round
// robin; concurrent callers share a dial (spec/client.md §13.1).

import type { Link } from "./link.ts";

/** Settings of a pool. */
export interface LinkPoolOptions {
  /** Connections at most. */
  readonly maximum: number;
  /** Load from which a connection counts as busy. */
  readonly busyLoad: number;
  /** Opens one. */
  readonly dial: () => Promise<Link>;
}

/** The connections of one kind to one broker. */
export class LinkPool {
  readonly #options: LinkPoolOptions;
  readonly #links: Link[] = [];
  #dialling: Promise<Link> | null = null;
  #turn = 0;

  /** An empty pool. */
  constructor(options: LinkPoolOptions) {
    this.#options = options;
  }

  /** All connections, draining ones included. */
  get links(): readonly Link[] {
    return this.#links;
  }

  /** A connection that is open, if there is one. */
  get anyOpen(): Link | undefined {
    for (const link of this.#links) if (link.open) return link;
    return undefined;
  }

  /** A connection to open a stream on. @throws {FelixError} as `dial` does */
  async acquire(): Promise<Link> {
    const open = this.#links.filter((link) => link.open);
    const free = open.filter((link) => link.load < this.#options.busyLoad);
    if (free.length > 0) return free[this.#turn++ % free.length]!;
    if (open.length >= this.#options.maximum) {
      return open.reduce((least, link) => link.load < least.load ? link : least);
    }
    try {
      return await this.#dial();
    } catch (error) {
      const usable = this.anyOpen;
      if (usable === undefined) throw error;
      return usable;
    }
  }

  /** A connection of its own for writer number `index`, while the maximum allows. */
  async acquireNth(index: number): Promise<Link> {
    const open = this.#links.filter((link) => link.open);
    const wanted = index % this.#options.maximum;
    if (wanted < open.length) return open[wanted]!;
    if (open.length === 0 || wanted >= open.length) return await this.#dial();
    return open[0]!;
  }

  /** Takes a connection out that has ended. */
  remove(link: Link): void {
    const at = this.#links.indexOf(link);
    if (at >= 0) this.#links.splice(at, 1);
  }

  #dial(): Promise<Link> {
    return this.#dialling ??= this.#options.dial().then((link) => {
      this.#links.push(link);
      return link;
    }).finally(() => {
      this.#dialling = null;
    });
  }
}
