// Where an interrupted subscription goes on (spec/client.md §7.3). Each case is one way of having
// been interrupted.

import { assertEquals } from "@std/assert";
import { resumeStart } from "./resume_start.ts";
import type { ResumePoint } from "./resume_start.ts";

const nothing: ResumePoint = {
  next: null,
  start: "latest",
  liveOffset: null,
  movedFrom: undefined,
  receivedAny: false,
};

Deno.test("behind the last one received, or where a move says, whatever is later", () => {
  assertEquals(resumeStart({ ...nothing, next: 8n, receivedAny: true }), 8n);
  assertEquals(resumeStart({ ...nothing, next: 8n, movedFrom: 5n }), 8n);
  assertEquals(resumeStart({ ...nothing, next: 8n, movedFrom: 9n }), 9n);
});

Deno.test("with nothing received the original start holds", () => {
  assertEquals(resumeStart({ ...nothing, start: "earliest" }), "earliest");
  assertEquals(resumeStart({ ...nothing, start: 12n }), 12n);
  assertEquals(resumeStart({ ...nothing, liveOffset: 30n }), 30n, "latest, as of the first time");
  assertEquals(resumeStart(nothing), "latest");
  assertEquals(resumeStart({ ...nothing, movedFrom: 4n }), 4n);
  assertEquals(resumeStart({ ...nothing, start: 12n, movedFrom: 4n }), 12n);
});

Deno.test("a stream without offsets goes on at its tail", () => {
  assertEquals(resumeStart({ ...nothing, start: "earliest", receivedAny: true }), "latest");
});
