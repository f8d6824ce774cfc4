import type { SessionProof, ValidatedThreepid } from '../identity/session-proofs.ts'

/** The purpose of a validation. A session for one purpose does not count for another. */
export const PURPOSES = ['register', 'password', 'add'] as const
export type Purpose = (typeof PURPOSES)[number]

export interface ProvenThreepid extends ValidatedThreepid {
  readonly purpose: Purpose
  /** The session's id, unique among those of all servers. */
  readonly session: string
}

/** A session as clients send it, with its identity server if they named one. */
export interface NamedProof extends SessionProof {
  readonly idServer?: string | undefined
  readonly accessToken?: string | undefined
}
