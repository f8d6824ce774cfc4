/** What an audit checked. */
export interface AuditTally {
  events: number
  /** Content hashes that match. */
  hashes: number
  /** Events of which only the redacted copy is stored, so that their content hash cannot be checked. */
  redactedCopies: number
  signatures: number
  /** Signatures whose key is not stored. */
  uncheckedSignatures: number
  /** Verdicts by an event's auth events, and by the state before it. */
  verdicts: number
  /** Verdicts that cannot be repeated, because content that they depended on was redacted. */
  uncheckedVerdicts: number
  /** States that were computed again from the previous events. */
  states: number
  /** How many of them needed a resolution. */
  resolutions: number
  /** States that another server gave us because previous events were missing. */
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
