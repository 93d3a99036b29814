// A server that the published client takes for a broker and that does the least a broker can do:
// the mark for what our broker adds under that client, in time and in memory at rest.
//
// Run by the harness: least_broker.ts CERT_FILE KEY_FILE VALUE_BYTES

import { eachBidirectional, listen, readAll } from "../raw/quic.ts";
import { sendLine, untilStdinEnds } from "../worker.ts";
import { Answers, LeastBroker } from "./answers.ts";

/** Read buffer of one stream: 41 of them are what an idle connection costs. */
const READ_BYTES = 2048;

async function serveStream(
  stream: Deno.QuicBidirectionalStream,
  broker: LeastBroker,
): Promise<void> {
  const writer = stream.writable.getWriter();
  let out: Answers | null = new Answers();
  await readAll(stream.readable, READ_BYTES, (bytes) => {
    const answers = out ?? new Answers();
    out = null;
    const used = broker.answer(bytes, answers);
    if (answers.length === 0) {
      out = answers;
      return used;
    }
    return writer.write(answers.bytes.subarray(0, answers.length)).then(() => {
      answers.length = 0;
      out = answers;
      return used;
    });
  });
  await writer.close();
}

if (import.meta.main) {
  const [certFile, keyFile, valueBytes] = Deno.args;
  if (certFile === undefined || keyFile === undefined) Deno.exit(2);
  const broker = new LeastBroker(Number(valueBytes ?? 256));
  const tls = { cert: Deno.readTextFileSync(certFile), key: Deno.readTextFileSync(keyFile) };
  const { port } = listen(tls, (connection) => {
    eachBidirectional(connection, (stream) => serveStream(stream, broker)).catch(() => {});
  });
  sendLine({ ready: true, port });
  await untilStdinEnds();
}
