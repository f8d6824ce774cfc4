import type { Requester } from '../accounts/requester.ts'

/** An administrator of this server: a user with that right, or a caller on the command line. */
export interface Operator {
  /** A user id, or `command line`: the name in the log of actions. */
  readonly name: string
  /** Undefined for the command line. */
  readonly requester: Requester | undefined
  /** In the console: whether they proved who they are a short time ago. Undefined for tools, which have a token of their own. */
  readonly isRecent?: boolean
}
