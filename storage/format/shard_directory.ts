// Names of shards: a directory that is unique and safe on any file system, and a label for people
// (spec/storage.md §2.1). Rule: what can be read of the name is a help; the hash makes it unique.

/** Which shard of which stream or cache. */
export interface ShardKey {
  readonly tenant: string;
  readonly namespace: string;
  readonly name: string;
  /** 0 to 2^32 - 1. */
  readonly shard: number;
}

const MAX_COMPONENT_CHARACTERS = 32;
const FNV_OFFSET = 0xCBF2_9CE4_8422_2325n;
const FNV_PRIME = 0x100_0000_01B3n;
const U64_MASK = 0xFFFF_FFFF_FFFF_FFFFn;

/** Directory of a shard below its root, as `tenant_namespace_name_0-<16 hex digits>`. */
export function shardDirectoryName(key: ShardKey): string {
  const { tenant, namespace, name, shard } = key;
  const parts = [tenant, namespace, name].map(readable);
  const hash = hashOf(key).toString(16).padStart(16, "0");
  return `${parts.join("_")}_${shard}-${hash}`;
}

/** What a shard is called in errors, logs and metrics. */
export function shardLabel({ tenant, namespace, name, shard }: ShardKey): string {
  return `${tenant}/${namespace}/${name}/${shard}`;
}

function readable(text: string): string {
  const safe = [...text].map((character) => /^[A-Za-z0-9-]$/.test(character) ? character : "_");
  return safe.slice(0, MAX_COMPONENT_CHARACTERS).join("") || "_";
}

/** FNV-1a 64 over each text with its length before it, then the shard. */
function hashOf({ tenant, namespace, name, shard }: ShardKey): bigint {
  let hash = FNV_OFFSET;
  const add = (bytes: Uint8Array) => {
    for (const byte of bytes) hash = ((hash ^ BigInt(byte)) * FNV_PRIME) & U64_MASK;
  };
  const number = new Uint8Array(8);
  const view = new DataView(number.buffer);
  for (const text of [tenant, namespace, name]) {
    const bytes = new TextEncoder().encode(text);
    view.setBigUint64(0, BigInt(bytes.length));
    add(number);
    add(bytes);
  }
  view.setUint32(0, shard);
  add(number.subarray(0, 4));
  return hash;
}
