import type { JsonObject } from '../../core/json.ts'

/** Stages to complete, in this order: `['m.login.recaptcha', 'm.login.terms']`. */
export type UiaFlow = readonly string[]

/** The completed stages, each with what it established. It never contains a password. */
export type UiaProof = Readonly<Record<string, JsonObject>>

export function isFlowDone(flows: readonly UiaFlow[], completed: UiaProof): boolean {
  return flows.some((flow) => flow.every((stage) => Object.hasOwn(completed, stage)))
}

/**
 * The stages that may come next: for each flow that begins with the completed stages, the one after them (client-server API,
 * "User-Interactive Authentication API": the stages of a flow are completed in order).
 */
export function nextStages(flows: readonly UiaFlow[], completed: UiaProof): string[] {
  const done = Object.keys(completed)
  const begun = flows.filter((flow) => done.every((stage) => flow.slice(0, done.length).includes(stage)))
  return begun.map((flow) => flow[done.length]).filter((stage) => stage !== undefined)
}
