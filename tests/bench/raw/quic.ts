// Deno's QUIC, used as directly as it can be: what the ceilings and the least broker stand on.
// Rule: one reused buffer per reader, handed back through the view that every read returns.

/** Called with what one read brought; returns how many leading bytes it is done with. */
export type Consume = (bytes: Uint8Array<ArrayBuffer>) => number | Promise<number>;

const TRANSPORT_OPTIONS = {
  keepAliveInterval: 2000,
  maxIdleTimeout: 6000,
  maxConcurrentBidirectionalStreams: 1024,
  maxConcurrentUnidirectionalStreams: 1024,
} as const;

/** A server on 127.0.0.1; `serve` runs once per accepted connection. */
export function listen(
  tls: { readonly cert: string; readonly key: string },
  serve: (connection: Deno.QuicConn) => void,
): { readonly port: number; close(): void } {
  const endpoint = new Deno.QuicEndpoint({ hostname: "127.0.0.1", port: 0 });
  const listener = endpoint.listen({ ...tls, ...TRANSPORT_OPTIONS, alpnProtocols: [] });
  void (async () => {
    for await (const incoming of listener) {
      void (async () => {
        const connection = await incoming.accept(TRANSPORT_OPTIONS_FOR_ACCEPT);
        connection.closed.catch(() => {});
        serve(connection);
      })().catch(() => {});
    }
  })().catch(() => {});
  return { port: endpoint.addr.port, close: () => endpoint.close({ closeCode: 0, reason: "" }) };
}

const TRANSPORT_OPTIONS_FOR_ACCEPT = { alpnProtocols: [], ...TRANSPORT_OPTIONS };

/** A connection to a server on this machine whose certificate `ca` vouches for. */
export async function connect(
  target: { readonly hostname: string; readonly port: number },
  ca: string,
): Promise<Deno.QuicConn> {
  const connection = await Deno.connectQuic({
    ...target,
    ...TRANSPORT_OPTIONS,
    serverName: "localhost",
    alpnProtocols: [],
    caCerts: [ca],
  });
  connection.closed.catch(() => {});
  return connection;
}

/**
 * Reads until the end of `readable`, or until it fails. Bytes that `consume` is not done with are
 * moved to the front and shown again together with the next ones; the buffer doubles when one
 * frame fills it.
 */
export async function readAll(
  readable: ReadableStream<Uint8Array<ArrayBuffer>>,
  bufferBytes: number,
  consume: Consume,
): Promise<void> {
  const reader = readable.getReader({ mode: "byob" });
  let buffer = new ArrayBuffer(bufferBytes);
  let kept = 0;
  for (;;) {
    const { value, done } = await reader.read(new Uint8Array(buffer, kept));
    if (done || value === undefined) return;
    buffer = value.buffer;
    const total = kept + value.byteLength;
    const used = consume(new Uint8Array(buffer, 0, total));
    const taken = typeof used === "number" ? used : await used;
    kept = total - taken;
    if (kept > 0 && taken > 0) new Uint8Array(buffer).copyWithin(0, taken, total);
    if (kept === buffer.byteLength) buffer = buffer.transfer(buffer.byteLength * 2);
  }
}

/** Every stream in both directions that the peer opens, until the connection ends. */
export async function eachBidirectional(
  connection: Deno.QuicConn,
  serve: (stream: Deno.QuicBidirectionalStream) => Promise<void>,
): Promise<void> {
  for await (const stream of connection.incomingBidirectionalStreams) {
    serve(stream).catch(() => {});
  }
}
