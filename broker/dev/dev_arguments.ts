// The command line of the development launcher.

/** What was asked for. */
export type DevCommand =
  | { readonly kind: "run"; readonly options: DevOptions }
  | { readonly kind: "token"; readonly options: TokenOptions }
  | { readonly kind: "help" };

/** Options of a run. */
export interface DevOptions {
  /** State directory. */
  readonly state: string;
  /** UDP port; `null`: not given. */
  readonly port: number | null;
  /** TCP port of metrics and probes; `null`: not given. */
  readonly metricsPort: number | null;
  /** Nothing is kept on disk but keys and certificates. */
  readonly memory: boolean;
  /** Further streams and caches; `null`: none. */
  readonly catalog: string | null;
}

/** Options of `token`. */
export interface TokenOptions {
  readonly state: string;
  readonly tenant: string;
  readonly principal: string;
  /** Empty: everything that the development token may. */
  readonly permissions: readonly string[];
  readonly ttlSeconds: number;
}

/** A command line that cannot be run. */
export class DevArgumentError extends Error {
  override readonly name = "DevArgumentError";
  /** Stable code of this class. */
  readonly code = "bad_argument";
}

/** What `--help` prints. */
export const DEV_USAGE = `deno task dev: a Felix broker for development, on this machine only

Usage: deno task dev [options]
       deno task dev token [--tenant T] [--principal P] [--perm ACTION:OBJECT]... [--ttl SECONDS]

  --state DIR          where certificates, keys, data and dev.json live (default .felix)
  --port N             UDP port of the broker (default 5000; 0: any free one)
  --metrics-port N     TCP port of metrics and probes (default 8080; 0: any free one)
  --memory             keep everything in memory: nothing survives a restart
  --catalog FILE       YAML file with further tenants, streams and caches
  --help               print this

\`token\` prints a token signed with the key in the state directory. Settings in the environment
(FELIX_*) reach the broker; a flag wins over FELIX_QUIC_BIND and FELIX_BROKER_METRICS_BIND.
`;

const DEFAULT_STATE = ".felix";
const DEFAULT_TTL_SECONDS = 7 * 24 * 3600;

/** @throws {DevArgumentError} */
export function parseDevArguments(args: readonly string[]): DevCommand {
  const values = new Map<string, string[]>();
  const token = args[0] === "token";
  const known = token
    ? ["--state", "--tenant", "--principal", "--perm", "--ttl"]
    : ["--state", "--port", "--metrics-port", "--catalog"];
  let memory = false;
  const rest = args.slice(token ? 1 : 0);
  for (let index = 0; index < rest.length; index++) {
    const argument = rest[index]!;
    const equals = argument.indexOf("=");
    const flag = equals < 0 ? argument : argument.slice(0, equals);
    if (flag === "--help" || flag === "-h") return { kind: "help" };
    if (flag === "--memory" && !token) memory = true;
    else if (!known.includes(flag)) {
      throw new DevArgumentError(`unknown argument ${JSON.stringify(flag)}; --help lists them`);
    } else {
      const value = equals < 0 ? rest[++index] : argument.slice(equals + 1);
      if (value === undefined || value === "") throw new DevArgumentError(`${flag} needs a value`);
      values.set(flag, [...values.get(flag) ?? [], value]);
    }
  }
  const last = (flag: string): string | null => values.get(flag)?.at(-1) ?? null;
  const state = last("--state") ?? DEFAULT_STATE;
  if (token) {
    const ttl = last("--ttl");
    return {
      kind: "token",
      options: {
        state,
        tenant: last("--tenant") ?? "t1",
        principal: last("--principal") ?? "p:dev",
        permissions: values.get("--perm") ?? [],
        ttlSeconds: ttl === null ? DEFAULT_TTL_SECONDS : wholeNumber("--ttl", ttl, 2 ** 31),
      },
    };
  }
  const port = last("--port");
  const metricsPort = last("--metrics-port");
  return {
    kind: "run",
    options: {
      state,
      port: port === null ? null : wholeNumber("--port", port, 65535),
      metricsPort: metricsPort === null ? null : wholeNumber("--metrics-port", metricsPort, 65535),
      memory,
      catalog: last("--catalog"),
    },
  };
}

function wholeNumber(flag: string, text: string, max: number): number {
  const value = /^[0-9]+$/.test(text) ? Number(text) : NaN;
  if (!(value <= max)) throw new DevArgumentError(`${flag} must be a whole number up to ${max}`);
  return value;
}
