/**
 * QUIC for Felix: one small interface, two engines.
 * @module
 */
export * from "./transport.ts";
export { nativeTransport } from "./native/native_transport.ts";
export {
  type CertificateRequest,
  createCertificateAuthority,
  issueCertificate,
  type KeyedCertificate,
} from "./certificates/issue.ts";
export {
  type DevelopmentCertificates,
  ensureDevelopmentCertificates,
} from "./certificates/development.ts";
export { quicheTransport } from "./quiche/quiche_transport.ts";
