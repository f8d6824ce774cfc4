import type { JsonBytes } from '../../../core/json-bytes.ts'
import type { Requester } from '../../accounts/requester.ts'
import type { WakeFollower } from '../notifier.ts'
import type { Presence } from '../presence.ts'
import type { SentAnswers } from '../sent-answers.ts'
import type { WholeAnswer } from '../sync.ts'
import type { OneAtATime } from './one-at-a-time.ts'
import type { SlidingRequest } from './request.ts'
import type { Turn } from './turns.ts'

export interface ConnectionAnswer extends WholeAnswer {
  /** Stands for the connection among all. */
  readonly connection: string
}

/**
 * Looks once for what is new to a connection since its position, for a node that holds its request. Undefined at its beginning.
 *
 * @throws as `SlidingSync.sync`
 */
export type LookElsewhere = (
  by: Requester,
  request: SlidingRequest,
  from: WakeFollower,
) => Promise<ConnectionAnswer | undefined>

export function createLookElsewhere<Looked extends { readonly isEmpty: boolean }>(parts: {
  readonly answers: Pick<SentAnswers, 'mustHaveRoom'>
  readonly presence: Pick<Presence, 'seen'>
  readonly oneAtATime: OneAtATime
  turnOf(by: Requester, request: SlidingRequest): Promise<Turn>
  lookAt(turn: Turn): Looked | Promise<Looked>
  finish(turn: Turn, looked: Looked): Promise<JsonBytes>
  unchanged(turn: Turn): Promise<JsonBytes>
}): LookElsewhere {
  const { answers, presence, oneAtATime } = parts
  return async (by, request, from) => {
    answers.mustHaveRoom(by)
    presence.seen(by, request.presence)
    if (request.pos === undefined) return undefined
    const turn = await parts.turnOf(by, request)
    const { name } = turn
    const end = await oneAtATime.begin(name, request.signal, from)
    try {
      const looked = await parts.lookAt(turn)
      if (!end.isSuperseded)
        return { connection: name, isEmpty: looked.isEmpty, json: await parts.finish(turn, looked) }
      // It is not to be held any more.
      return { connection: name, isEmpty: false, json: await parts.unchanged(turn) }
    } finally {
      oneAtATime.end(name, end)
    }
  }
}
