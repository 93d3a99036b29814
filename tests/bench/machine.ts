// What a run was made on: processor, kernel, and the versions of everything that took part. Figures
// without these cannot be compared with anything.

import { findPython } from "../interop/venv.ts";
import { readProc } from "./child.ts";
import { findProgram } from "./load/peer_servers.ts";

/** The machine and the versions, as lines of "name: value". */
export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGiB: number;
  readonly system: string;
  readonly deno: string;
  /** Version of each peer and of the published client; absent where not installed. */
  readonly versions: Readonly<Record<string, string>>;
}

/** Looks at the machine. */
export async function describeMachine(): Promise<Machine> {
  const python = await findPython();
  const asked: [string, string | null, string[]][] = [
    ["NATS", findProgram("nats-server"), ["--version"]],
    ["Redis", findProgram("redis-server"), ["--version"]],
    ["felix-client", python, ["-c", "import felix; print(felix.__version__)"]],
  ];
  const versions: Record<string, string> = {};
  for (const [name, command, args] of asked) {
    if (command === null) continue;
    const { stdout } = await new Deno.Command(command, { args, stderr: "null" }).output();
    versions[name] = /\d+\.\d+\.\d+/.exec(new TextDecoder().decode(stdout))?.[0] ?? "unknown";
  }
  return {
    cpu: processorName(),
    cores: navigator.hardwareConcurrency,
    memoryGiB: Math.round(Deno.systemMemoryInfo().total / 2 ** 30),
    system: `${Deno.build.os} ${Deno.osRelease()} ${Deno.build.arch}`,
    deno: Deno.version.deno,
    versions,
  };
}

function processorName(): string {
  const text = readProc("/proc/cpuinfo");
  return /^model name\s*:\s*(.+)$/m.exec(text)?.[1]?.trim() ?? Deno.build.arch;
}
