// Looks at the certificate files every 30 seconds. The QUIC engines cannot change the certificate
// of a listener, so a new pair is checked and announced once: a restart serves it.

import type { BrokerSettings } from "../config/settings.ts";
import type { BrokerLog } from "../log/broker_log.ts";
import { readTlsFiles, tlsFilesVersion } from "./tls_identity.ts";

const EVERY_MS = 30_000;

/** Starts to look; returns the way to stop. */
export function watchCertificate(settings: BrokerSettings, log: BrokerLog): () => void {
  if (settings.tlsCert === null) return () => {};
  const look = certificateWatcher(settings, log);
  const timer = setInterval(look, EVERY_MS);
  Deno.unrefTimer(timer);
  return () => clearInterval(timer);
}

/** A function that looks once, and logs when the files have changed since it last looked. */
export function certificateWatcher(settings: BrokerSettings, log: BrokerLog): () => void {
  let known = tlsFilesVersion(settings);
  return () => {
    const version = tlsFilesVersion(settings);
    // While files are being replaced one of them may be missing.
    if (version === null || version === known) return;
    known = version;
    try {
      readTlsFiles(settings);
      log.warn("certificate files have changed; restart to serve the new certificate", {
        cert: settings.tlsCert,
      });
    } catch (error) {
      log.error("certificate files have changed and cannot be used", {
        error,
        code: "bad_certificate",
      });
    }
  };
}
