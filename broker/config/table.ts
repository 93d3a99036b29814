// All settings of a broker in one list, and how to find one by what an operator wrote.

import { OTHER_COMPONENT_NAMES, TEST_ONLY_NAMES } from "./known_names.ts";
import type { Setting } from "./setting.ts";
import { STORAGE_SETTINGS } from "./table_storage.ts";
import { ABSENT_SETTINGS, ACCEPTED_SETTINGS, REFUSED_SETTINGS } from "./table_not_applied.ts";
import { IDENTITY_SETTINGS, LIFECYCLE_SETTINGS, LISTENER_SETTINGS } from "./table_process.ts";
import { DELIVERY_SETTINGS, LIMIT_SETTINGS, PUBLISH_SETTINGS } from "./table_traffic.ts";

/** A titled part of the table. */
export interface SettingSection {
  /** Heading in the documentation. */
  readonly title: string;
  /** Its settings, in the order of the documentation. */
  readonly settings: readonly Setting[];
}

/** Every setting, by section. */
export const SECTIONS: readonly SettingSection[] = [
  { title: "Listeners and TLS", settings: LISTENER_SETTINGS },
  { title: "Identity, keys and catalog", settings: IDENTITY_SETTINGS },
  { title: "Publish path", settings: PUBLISH_SETTINGS },
  { title: "Limits", settings: LIMIT_SETTINGS },
  { title: "Streams, caches and delivery", settings: DELIVERY_SETTINGS },
  { title: "Durable storage", settings: STORAGE_SETTINGS },
  { title: "Lifecycle and logs", settings: LIFECYCLE_SETTINGS },
  { title: "Refused in this build", settings: REFUSED_SETTINGS },
  { title: "Accepted, not applied", settings: ACCEPTED_SETTINGS },
  { title: "Of features that this build does not have", settings: ABSENT_SETTINGS },
];

/** Every setting. */
export const SETTINGS: readonly Setting[] = SECTIONS.flatMap((section) => section.settings);

/** Settings by their YAML path. */
export const SETTINGS_BY_KEY: ReadonlyMap<string, Setting> = new Map(
  SETTINGS.flatMap((setting) => setting.key === undefined ? [] : [[setting.key, setting]]),
);

/** Settings by variable name, aliases included. */
export const SETTINGS_BY_NAME: ReadonlyMap<string, Setting> = new Map(
  SETTINGS.flatMap((setting) => namesOf(setting).map((name) => [name, setting] as const)),
);

/** Every `FELIX_*` name that some Felix process reads. */
export const KNOWN_NAMES: ReadonlySet<string> = new Set([
  ...SETTINGS_BY_NAME.keys(),
  ...OTHER_COMPONENT_NAMES,
  ...TEST_ONLY_NAMES,
]);

/** The variable names of a setting in the order in which they are looked up. */
export function namesOf(setting: Setting): string[] {
  return [...setting.preferredAliases ?? [], setting.name, ...setting.aliases ?? []];
}
