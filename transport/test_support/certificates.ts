// Certificates for tests: an authority, what it issues, and the kinds that must be refused. Rule:
// made once per test file, valid from now, nothing is read from or written to disk.

import {
  createCertificateAuthority,
  issueCertificate,
  type KeyedCertificate,
} from "../certificates/issue.ts";

/** Everything that the tests of this room need. */
export interface TestCertificates {
  readonly authority: KeyedCertificate;
  /** For `localhost`, `127.0.0.1` and `::1`. */
  readonly server: KeyedCertificate;
  /** Issued by the same authority. */
  readonly client: KeyedCertificate;
  /** Issued by the same authority, and over. */
  readonly expired: KeyedCertificate;
  readonly otherAuthority: KeyedCertificate;
  /** Issued by the other authority, to the client's name. */
  readonly stranger: KeyedCertificate;
}

const DAY_MS = 24 * 60 * 60 * 1000;

async function makeCertificates(): Promise<TestCertificates> {
  const authority = await createCertificateAuthority("Test CA");
  const otherAuthority = await createCertificateAuthority("Other CA");
  const names = ["broker-a"];
  const now = Date.now();
  return {
    authority,
    otherAuthority,
    server: await issueCertificate(authority, { names: ["localhost", "127.0.0.1", "::1"] }),
    client: await issueCertificate(authority, { names }),
    stranger: await issueCertificate(otherAuthority, { names }),
    expired: await issueCertificate(authority, {
      names,
      validFrom: new Date(now - 30 * DAY_MS),
      validUntil: new Date(now - DAY_MS),
    }),
  };
}

/** Made once per test file. */
export const certificates: TestCertificates = await makeCertificates();
