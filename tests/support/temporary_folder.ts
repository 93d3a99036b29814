// A folder of its own for one test, removed with everything in it when the test is done.
// Use it with `await using`, so that a failing test cleans up as well.

/** A temporary folder. */
export interface TemporaryFolder extends AsyncDisposable {
  /** Its absolute path, without a slash at the end. */
  readonly path: string;
}

/** Makes a folder; `await using folder = await temporaryFolder()` removes it at the end. */
export async function temporaryFolder(prefix = "felix-test-"): Promise<TemporaryFolder> {
  const path = await Deno.makeTempDir({ prefix });
  return {
    path,
    async [Symbol.asyncDispose](): Promise<void> {
      await Deno.remove(path, { recursive: true }).catch((error: unknown) => {
        if (!(error instanceof Deno.errors.NotFound)) throw error;
      });
    },
  };
}
