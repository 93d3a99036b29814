// Warnings about `FELIX_*` variables that nothing reads, with what was probably meant.
// Order of suggestions (spec/operations.md §2.1): known names that contain the written segments in
// order (a segment was left out), then names within edit distance 2; nothing close: none.

import { KNOWN_NAMES } from "./table.ts";

const MAX_SUGGESTIONS = 3;
const MAX_DISTANCE = 2;

/** A variable that nothing reads. */
export interface UnknownVariable {
  /** The name as it is set. */
  readonly name: string;
  /** Known names that are close, best first; may be empty. */
  readonly didYouMean: readonly string[];
}

/** The `FELIX_*` names among `names` that no Felix process reads, sorted. */
export function unknownVariables(names: Iterable<string>): UnknownVariable[] {
  const unknown = [...names].filter((name) => name.startsWith("FELIX_") && !KNOWN_NAMES.has(name));
  return unknown.sort().map((name) => ({ name, didYouMean: suggest(name, KNOWN_NAMES) }));
}

/** Up to three of `known` that `name` may have meant, best first. */
export function suggest(name: string, known: Iterable<string>): string[] {
  const segments = name.split("_");
  const bySegments: string[] = [];
  const byDistance: { candidate: string; distance: number }[] = [];
  for (const candidate of known) {
    if (containsInOrder(candidate.split("_"), segments)) bySegments.push(candidate);
    else {
      const distance = editDistance(name, candidate, MAX_DISTANCE);
      if (distance <= MAX_DISTANCE) byDistance.push({ candidate, distance });
    }
  }
  bySegments.sort((a, b) => a.length - b.length || compare(a, b));
  byDistance.sort((a, b) => a.distance - b.distance || compare(a.candidate, b.candidate));
  return [...bySegments, ...byDistance.map((entry) => entry.candidate)].slice(0, MAX_SUGGESTIONS);
}

function containsInOrder(candidate: readonly string[], segments: readonly string[]): boolean {
  let at = 0;
  for (const part of candidate) if (part === segments[at]) at++;
  // `FELIX` alone is in every name.
  return at === segments.length && segments.length > 1;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Levenshtein distance of two names, or something above `limit` when it is larger than that. */
export function editDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) > limit) return limit + 1;
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const substitution = previous[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      row.push(Math.min(substitution, previous[j]! + 1, row[j - 1]! + 1));
    }
    if (Math.min(...row) > limit) return limit + 1;
    previous = row;
  }
  return previous[b.length]!;
}
