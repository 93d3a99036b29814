// `deno task bench`: measures rows and prints each beside its ceiling and its peers. Exit code 0
// when every row of ours has figures, 1 when one lost something or failed, 2 for a bad command
// line. Time never decides: ratios are printed and read by people.

import { ChildFailed } from "./child.ts";
import { describeMachine } from "./machine.ts";
import { measureRow, type RowResult, type WithSession } from "./measure.ts";
import { type Options, parseOptions, UsageError } from "./options.ts";
import { markdownPage, tableHead, tableRow } from "./report.ts";
import { type Certificates, makeCertificates, Session } from "./session.ts";

function print(text: string): void {
  const bytes = new TextEncoder().encode(text + "\n");
  let written = 0;
  while (written < bytes.length) written += Deno.stdout.writeSync(bytes.subarray(written));
}

/** One session for everything in a smoke run, one for each measurement otherwise. */
class Sessions implements AsyncDisposable {
  readonly #keep: boolean;
  readonly #certificates: Certificates;
  #current: Session | null = null;
  /** Whether the run was told to stop. */
  stopped = false;

  constructor(keep: boolean, certificates: Certificates) {
    this.#keep = keep;
    this.#certificates = certificates;
  }

  /** Runs `use` in a session. */
  readonly with: WithSession = async (use) => {
    if (this.stopped) throw new ChildFailed("the run was stopped");
    this.#current ??= new Session(this.#certificates);
    try {
      return await use(this.#current);
    } finally {
      if (!this.#keep) await this.#close();
    }
  };

  /** Ends the processes of the session that is open; no other is opened. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.stopped = true;
    await this.#close();
  }

  async #close(): Promise<void> {
    const session = this.#current;
    this.#current = null;
    await session?.[Symbol.asyncDispose]();
  }
}

/** Servers do not end with this process: a run that is told to stop takes them along. */
function stopOnSignal(sessions: Sessions): void {
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    Deno.addSignalListener(signal, () => void sessions[Symbol.asyncDispose]());
  }
}

async function measureRows(options: Options): Promise<RowResult[]> {
  await using resources = new AsyncDisposableStack();
  const folder = await Deno.makeTempDir({ prefix: "felix-bench-" });
  resources.defer(() => Deno.remove(folder, { recursive: true }));
  const sessions = resources.use(new Sessions(options.smoke, await makeCertificates(folder)));
  stopOnSignal(sessions);
  if (!options.json) print(tableHead());
  const results: RowResult[] = [];
  for (const row of options.rows) {
    const result = await measureRow(row, options.trials, sessions.with);
    if (sessions.stopped) break;
    results.push(result);
    print(options.json ? JSON.stringify(result) : tableRow(result));
  }
  return results;
}

/** A row of ours has failed unless what it needs is merely not installed. */
function failed(result: RowResult): boolean {
  return result.void !== undefined && !result.void.startsWith("not installed");
}

async function main(): Promise<number> {
  let options: Options;
  try {
    options = parseOptions(Deno.args);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    print(error.message);
    return 2;
  }
  const results = await measureRows(options);
  if (results.length < options.rows.length) return 1;
  if (options.write !== null) {
    const date = new Date().toISOString().slice(0, 10);
    const run = { trials: options.trials, date };
    await Deno.writeTextFile(options.write, markdownPage(results, await describeMachine(), run));
  }
  const voided = results.filter(failed);

  if (voided.length > 0 && !options.json) {
    print(`\nvoid: ${voided.map(({ row }) => row).join(", ")}`);
  }
  return voided.length > 0 ? 1 : 0;
}

if (import.meta.main) Deno.exit(await main());
