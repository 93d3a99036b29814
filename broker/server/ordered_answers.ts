// Answers that take time, given in the order of the requests of their stream (spec/wire.md §4.6):
// an answer that is ready early waits for those before it. Requests whose answers are owed are
// bounded, in number and in bytes.

import type { AnswerBudget } from "./answer_budget.ts";

/** Answers of one stream that may be owed before its requests are left unread. */
const MAX_OWED = 256;
const MAX_OWED_BYTES = 1024 * 1024;

interface Place {
  readonly bytes: number;
  /** Gives the answer. */
  answer: (() => void) | null;
}

/** What one stream owes its client. */
export class OrderedAnswers {
  readonly #budget: AnswerBudget;
  readonly #onAnswered: () => void;
  #places: Place[] = [];
  #owedBytes = 0;
  #waiters: (() => void)[] = [];

  /** `onAnswered` is called after answers were given outside the call that asked for them. */
  constructor(budget: AnswerBudget, onAnswered: () => void) {
    this.#budget = budget;
    this.#onAnswered = onAnswered;
  }

  /** Answers owed now. */
  get owed(): number {
    return this.#places.length;
  }

  /** Whether no further request should be read. */
  get full(): boolean {
    return this.#places.length >= MAX_OWED || this.#owedBytes >= MAX_OWED_BYTES;
  }

  /** Resolves when there is room. */
  async room(): Promise<void> {
    while (this.full) await this.#change();
  }

  /** Resolves when nothing is owed. */
  async allAnswered(): Promise<void> {
    while (this.#places.length > 0) await this.#change();
  }

  /** Takes a place for `work`, which resolves to what gives its answer and does not reject. */
  add(bytes: number, work: Promise<() => void>): void {
    const place: Place = { bytes, answer: null };
    this.#places.push(place);
    this.#owedBytes += bytes;
    this.#budget.change(bytes);
    work.then((answer) => {
      place.answer = answer;
      if (this.#places[0] === place) this.#give();
    });
  }

  #give(): void {
    let given = 0;
    for (; this.#places[given]?.answer; given++) {
      const { answer, bytes } = this.#places[given]!;
      answer!();
      this.#owedBytes -= bytes;
      this.#budget.change(-bytes);
    }
    this.#places.splice(0, given);
    this.#onAnswered();
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const resolve of waiters) resolve();
  }

  #change(): Promise<void> {
    return new Promise((resolve) => this.#waiters.push(resolve));
  }
}
