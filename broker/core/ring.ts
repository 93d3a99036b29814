// A first-in first-out queue in a circular array: no element moves but when the array grows, and a
// queue that has held nothing yet holds no array. Its size is bounded by whoever pushes.

const FIRST_CAPACITY = 4;

/** A queue of `T`; every operation but growth is O(1). */
export class Ring<T> {
  #slots: (T | undefined)[] = [];
  #mask = -1;
  #head = 0;
  #length = 0;

  /** Elements held. */
  get length(): number {
    return this.#length;
  }

  /** The oldest element; `undefined` when empty. */
  get front(): T | undefined {
    return this.#length === 0 ? undefined : this.#slots[this.#head];
  }

  /** The element `index` places behind the front; `undefined` past the end. */
  at(index: number): T | undefined {
    if (index < 0 || index >= this.#length) return undefined;
    return this.#slots[(this.#head + index) & this.#mask];
  }

  /** Adds at the back. */
  push(element: T): void {
    if (this.#length > this.#mask) this.#grow();
    this.#slots[(this.#head + this.#length) & this.#mask] = element;
    this.#length++;
  }

  /** Adds at the front: the next `shift` returns it. */
  unshift(element: T): void {
    if (this.#length > this.#mask) this.#grow();
    this.#head = (this.#head - 1) & this.#mask;
    this.#slots[this.#head] = element;
    this.#length++;
  }

  /** Removes and returns the oldest element; `undefined` when empty. */
  shift(): T | undefined {
    if (this.#length === 0) return undefined;
    const element = this.#slots[this.#head];
    this.#slots[this.#head] = undefined;
    this.#head = (this.#head + 1) & this.#mask;
    this.#length--;
    return element;
  }

  /** Removes everything and gives the array back. */
  clear(): void {
    this.#slots = [];
    this.#mask = -1;
    this.#head = 0;
    this.#length = 0;
  }

  #grow(): void {
    const slots = new Array<T | undefined>(Math.max(FIRST_CAPACITY, this.#slots.length * 2));
    slots.fill(undefined);
    for (let index = 0; index < this.#length; index++) {
      slots[index] = this.#slots[(this.#head + index) & this.#mask];
    }
    this.#slots = slots;
    this.#mask = slots.length - 1;
    this.#head = 0;
  }
}
