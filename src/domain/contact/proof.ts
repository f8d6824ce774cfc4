import type { SessionProof, ValidatedThreepid } from '../identity/session-proofs.ts'

/** What an address is validated for. A session that was begun for one purpose counts for no other. */
export const PURPOSES = ['register', 'password', 'add'] as const
export type Purpose = (typeof PURPOSES)[number]

export interface ProvenThreepid extends ValidatedThreepid {
  readonly purpose: Purpose
  /** Which session shows it, among those of all servers. */
  readonly session: string
}

/** A session as clients show it; with the identity server that keeps it, where they were told to name one. */
export interface NamedProof extends SessionProof {
  readonly idServer?: string | undefined
  readonly accessToken?: string | undefined
}
