// The Python environment with the published client that interoperation is tested against: made once
// in `.venv` of the repository (or where FELIX_INTEROP_VENV says), used from then on. Rule: exactly
// one version of `felix-client`, taken from the package index by name.
//
// `deno run -A tests/interop/venv.ts` makes it and prints the path of its Python.

/** The published client that the specification was measured with. */
export const CLIENT_VERSION = "0.6.2";

/** The environment could not be made; `message` carries what the tool said. */
export class VirtualEnvironmentError extends Error {
  override readonly name = "VirtualEnvironmentError";
  readonly code = "virtual_environment";
}

/** The environment's folder, made or not. */
export function environmentFolder(): string {
  const overridden = Deno.env.get("FELIX_INTEROP_VENV");
  return overridden ?? new URL("../../.venv", import.meta.url).pathname;
}

/** The environment's Python when it has the right client, else `null`. */
export async function findPython(): Promise<string | null> {
  const python = `${environmentFolder()}/bin/python`;
  const version = await output(python, ["-c", "import felix; print(felix.__version__)"]);
  return version?.trim() === CLIENT_VERSION ? python : null;
}

/**
 * The environment's Python; makes the environment first if need be.
 * @throws {VirtualEnvironmentError} without Python 3, or when the package cannot be installed
 */
export async function ensurePython(): Promise<string> {
  const found = await findPython();
  if (found !== null) return found;
  const folder = environmentFolder();
  await run("python3", ["-m", "venv", folder]);
  const package_ = `felix-client==${CLIENT_VERSION}`;
  await run(`${folder}/bin/python`, ["-m", "pip", "install", "--quiet", package_]);
  const python = await findPython();
  if (python === null) throw new VirtualEnvironmentError(`${package_} does not import`);
  return python;
}

async function output(command: string, args: string[]): Promise<string | null> {
  try {
    const result = await new Deno.Command(command, { args, stderr: "null" }).output();
    return result.success ? new TextDecoder().decode(result.stdout) : null;
  } catch {
    return null;
  }
}

async function run(command: string, args: string[]): Promise<void> {
  let result: Deno.CommandOutput;
  try {
    result = await new Deno.Command(command, { args }).output();
  } catch (cause) {
    throw new VirtualEnvironmentError(`${command} cannot be started`, { cause });
  }
  if (!result.success) {
    const said = new TextDecoder().decode(result.stderr).trim();
    throw new VirtualEnvironmentError(`${command} ${args.join(" ")}: ${said}`);
  }
}

if (import.meta.main) {
  await Deno.stdout.write(new TextEncoder().encode(`${await ensurePython()}\n`));
}
