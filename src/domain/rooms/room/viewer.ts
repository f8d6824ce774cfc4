import type { UserId } from '../../../core/ids.ts'

/** A local user who reads. */
export interface Viewer {
  readonly userId: UserId
  readonly userNid: number
}
