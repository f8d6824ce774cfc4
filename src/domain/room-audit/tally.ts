/** What an audit went through. */
export interface AuditTally {
  events: number
  /** Content hashes that are right. */
  hashes: number
  /** Events of which only the redacted copy is here, so that their content has no hash to be held against. */
  redactedCopies: number
  signatures: number
  /** Signatures whose key is not at hand. */
  uncheckedSignatures: number
  /** Judgements by the events that one cites, and by the state before. */
  verdicts: number
  /** Judgements that cannot be repeated, since what they looked at was redacted. */
  uncheckedVerdicts: number
  /** States that were computed again from the events before. */
  states: number
  /** Among them those that took a resolution. */
  resolutions: number
  /** States that another server told us, since events before were not here. */
  uncheckedStates: number
  checkpoints: number
  members: number
}

export const emptyTally = (): AuditTally => ({
  events: 0,
  hashes: 0,
  redactedCopies: 0,
  signatures: 0,
  uncheckedSignatures: 0,
  verdicts: 0,
  uncheckedVerdicts: 0,
  states: 0,
  resolutions: 0,
  uncheckedStates: 0,
  checkpoints: 0,
  members: 0,
})
