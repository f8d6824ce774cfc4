import type { JsonObject } from '../../core/json.ts'

/** Stages to complete in this order: `['m.login.registration_token', 'm.login.dummy']`. */
export type UiaFlow = readonly string[]

/** The stages that were completed, each with what it established (never a secret). */
export type UiaProof = Readonly<Record<string, JsonObject>>
