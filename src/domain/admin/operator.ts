import type { Requester } from '../accounts/requester.ts'

/** Who administers this server: a user who may, or whoever is at its command line. */
export interface Operator {
  /** A user id, or `command line`: who is named in the record of acts. */
  readonly name: string
  /** Undefined for the command line. */
  readonly requester: Requester | undefined
}
