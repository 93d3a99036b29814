// `deno task bench`: measures rows and prints each beside its ceiling and its peers. Exit code 0
// when every row of ours has figures, 1 when one lost something or failed, 2 for a bad command
// line. Time never decides: ratios are printed and read by people.

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
function sessionPolicy(
  smoke: boolean,
  certificates: Certificates,
  resources: AsyncDisposableStack,
): WithSession {
  if (smoke) {
    const shared = resources.use(new Session(certificates));
    return (use) => use(shared);
  }
  return async (use) => {
    await using session = new Session(certificates);
    return await use(session);
  };
}

async function measureRows(options: Options): Promise<RowResult[]> {
  await using resources = new AsyncDisposableStack();
  const folder = await Deno.makeTempDir({ prefix: "felix-bench-" });
  resources.defer(() => Deno.remove(folder, { recursive: true }));
  const certificates = await makeCertificates(folder);
  const withSession = sessionPolicy(options.smoke, certificates, resources);
  if (!options.json) print(tableHead());
  const results: RowResult[] = [];
  for (const row of options.rows) {
    const result = await measureRow(row, options.trials, withSession);
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
