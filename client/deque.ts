// A first-in first-out queue without shifting: taking from the front moves an index. The space in
// front is given back once it is most of the array.

/** A queue. */
export class Deque<T> {
  #items: (T | undefined)[] = [];
  #head = 0;

  /** Number of items. */
  get size(): number {
    return this.#items.length - this.#head;
  }

  /** Appends an item. */
  push(item: T): void {
    this.#items.push(item);
  }

  /** The first item, which stays. */
  peek(): T | undefined {
    return this.#items[this.#head];
  }

  /** Takes the first item. */
  shift(): T | undefined {
    if (this.#head === this.#items.length) return undefined;
    const item = this.#items[this.#head];
    this.#items[this.#head++] = undefined;
    if (this.#head === this.#items.length) {
      this.#items.length = 0;
      this.#head = 0;
    } else if (this.#head >= 1024 && this.#head * 2 >= this.#items.length) {
      this.#items.splice(0, this.#head);
      this.#head = 0;
    }
    return item;
  }

  /** Removes one item; false when it is not there. */
  remove(item: T): boolean {
    const at = this.#items.indexOf(item, this.#head);
    if (at < 0) return false;
    this.#items.splice(at, 1);
    return true;
  }

  /** Takes everything. */
  takeAll(): T[] {
    const all = this.#items.slice(this.#head) as T[];
    this.#items = [];
    this.#head = 0;
    return all;
  }

  /** All items in order; the queue must not change meanwhile. */
  *[Symbol.iterator](): IterableIterator<T> {
    for (let at = this.#head; at < this.#items.length; at++) yield this.#items[at] as T;
  }
}
