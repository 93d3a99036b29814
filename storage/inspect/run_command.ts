// `felix log`: dump, verify and repair a log without a broker. Rules: it prints through what it is
// given; it answers with the exit code, 0 sound, 1 damaged or refused, 2 not understood.

import type { Disk } from "../disk/disk.ts";
import { DEFAULT_LOG_SETTINGS } from "../log/settings.ts";
import type { LogSettings } from "../log/settings.ts";
import { CorruptionError, StorageError } from "../storage_error.ts";
import { parseCommand, USAGE } from "./command_line.ts";
import type { Command } from "./command_line.ts";
import { LogDump } from "./dump_log.ts";
import { inspectLog } from "./inspect_log.ts";
import type { LogInspection } from "./inspect_log.ts";
import { damageText, inspectionLines, missingLines, repairedLine } from "./inspection_text.ts";
import { isLogDirectory, logDirectories } from "./log_directories.ts";
import { recordJson, recordLine } from "./record_text.ts";
import { repairLog } from "./repair_log.ts";

/** What a command works with. */
export interface CommandHost {
  readonly disk: Disk;
  /** Wall clock, microseconds since 1970. */
  readonly nowMicros: () => number;
  /** Absolute path that a relative one is taken from. */
  readonly here: string;
  /** Written into the lock file while a repair runs. */
  readonly owner: string;
  /** Prints a result; the text has its line break. */
  out(text: string): void;
  /** Prints what is not a result. */
  err(text: string): void;
}

type Verb<Name> = Extract<Command, { verb: Name }>;

/** An exit code. */
export type ExitCode = 0 | 1 | 2;

const SETTINGS: LogSettings = DEFAULT_LOG_SETTINGS;

/** Runs `log VERB DIR ...` and resolves to the exit code. */
export async function runCommand(host: CommandHost, args: readonly string[]): Promise<ExitCode> {
  const command = parseCommand(args, host.here);
  if ("problem" in command) {
    host.err(`felix: ${command.problem}\n${USAGE}`);
    return 2;
  }
  try {
    switch (command.verb) {
      case "help":
        host.out(USAGE);
        return 0;
      case "dump":
        return await dump(host, command);
      case "verify":
        return await verify(host, command);
      case "repair":
        return command.apply ? await repair(host, command) : await verifyLog(host, command);
    }
  } catch (error) {
    if (!(error instanceof StorageError)) throw error;
    const { code, message } = error;
    host.err(`felix: ${message}\n`);
    if (command.verb !== "help" && command.json) {
      host.out(`${JSON.stringify({ error: { code, message } })}\n`);
    }
    return 1;
  }
}

async function dump(host: CommandHost, command: Verb<"dump">): Promise<ExitCode> {
  checkLog(host, command.directory);
  const log = new LogDump(host.disk, command.directory, command.range);
  const line = command.json ? recordJson : recordLine;
  for await (const record of log) host.out(`${line(record)}\n`);
  const { damage } = log;
  if (damage === null) return 0;
  if (command.json) host.out(`${JSON.stringify({ damage })}\n`);
  else host.err(`felix: the log does not verify from here on: ${damageText(damage)}\n`);
  return 1;
}

async function verify(host: CommandHost, command: Verb<"verify">): Promise<ExitCode> {
  const { disk } = host;
  const { directory, json } = command;
  if (isLogDirectory(disk, directory)) return await verifyLog(host, command);
  const directories = logDirectories(disk, directory);
  if (directories.length === 0) throw new StorageError("io", `${directory} holds no log`);
  const logs: LogInspection[] = [];
  for (const log of directories) {
    const inspection = await inspectLog(disk, log, SETTINGS);
    logs.push(inspection);
    if (!json) host.out(`${inspectionLines(inspection).join("\n")}\n`);
  }
  const bad = logs.filter(({ sound }) => !sound).length;
  if (json) host.out(document({ root: directory, sound: bad === 0, logs }));
  else host.out(`logs: ${logs.length}, not sound: ${bad}\n`);
  return bad === 0 ? 0 : 1;
}

async function verifyLog(
  host: CommandHost,
  { directory, json }: { readonly directory: string; readonly json: boolean },
): Promise<ExitCode> {
  checkLog(host, directory);
  const inspection = await inspectLog(host.disk, directory, SETTINGS);
  host.out(json ? document(inspection) : `${inspectionLines(inspection).join("\n")}\n`);
  return inspection.sound ? 0 : 1;
}

async function repair(
  host: CommandHost,
  { directory, json }: Verb<"repair">,
): Promise<ExitCode> {
  checkLog(host, directory);
  let result;
  try {
    result = await repairLog({ ...host, directory, settings: SETTINGS });
  } catch (error) {
    if (!(error instanceof CorruptionError)) throw error;
    host.err("felix: recovery refuses this log; nothing was changed\n");
    return await verifyLog(host, { directory, json });
  }
  const inspection = await inspectLog(host.disk, directory, SETTINGS);
  if (json) {
    host.out(document({ repaired: result.repaired, missing: result.missing, after: inspection }));
  } else {
    const [title, ...rest] = inspectionLines(inspection);
    const done = [...result.repaired.map(repairedLine), ...missingLines(result.missing)];
    host.out([title, ...done, ...rest, ""].join("\n"));
  }
  return inspection.sound ? 0 : 1;
}

/** Refuses a directory that is not that of one log. */
function checkLog({ disk }: CommandHost, directory: string): void {
  if (isLogDirectory(disk, directory)) return;
  const isRoot = logDirectories(disk, directory).length > 0;
  const hint = isRoot ? "it is a storage root; name one of the logs below it" : "no segment files";
  throw new StorageError("io", `${directory} is not the directory of a log: ${hint}`);
}

function document(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
