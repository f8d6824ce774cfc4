import type { Besieged } from '../../../rooms/besieged.ts'
import type { Json } from '../../../support/api.ts'
import type { SyncClient } from '../connection.ts'
import { type Ask, callOf, type Form, newsOf, type Wish } from './asking.ts'
import { outlineOf } from './chain.ts'
import { checkName, checkState, checkSummary, checkTimeline, together } from './checks.ts'
import { KnownRoom } from './known-room.ts'
import type { ResetRoom, RoomTruth } from './reset-room.ts'
import { shapeProblems } from './shape.ts'

/** A client that compares what it knows of a room with what is so, after each answer. */
export interface ResetClient {
  readonly name: string
  /** @param isLost the answer does not reach the client */
  turn(isLost: boolean): Promise<void>
}

/** Whether a client that was sent this is right about the user. Who was never in need not hear of it. */
function checkMembership(heard: string | undefined, right: string | undefined): string[] {
  const isIn = heard === 'join'
  if (right === 'join' || right === 'invite')
    return heard === right ? [] : [`the client takes the user to be ${heard}, is ${right}`]
  return isIn || heard === 'invite' ? [`the client takes the user to be ${heard}, is ${right}`] : []
}

/** State without a successor: the earlier text, and classic sync, cannot say that it is gone. */
function dropRemoved({ state }: KnownRoom, truth: RoomTruth): void {
  for (const key of state.keys()) if (!truth.state.has(key)) state.delete(key)
}

/** Of what came while the user was out, they are shown only what became of their own membership. */
function checkHidden(shown: readonly Json[], { hidden }: ResetRoom, userId: string): string[] {
  return shown.flatMap(({ event_id: id, type, state_key: key }) =>
    hidden.has(id) && !(type === 'm.room.member' && key === userId)
      ? [`${type} ${id} came while the user was out`]
      : [],
  )
}

export function slidingResetClient(
  room: ResetRoom,
  {
    client,
    form,
    connId,
    wish,
    isWanderer,
  }: { client: SyncClient; form: Form; connId: string; wish: Wish; isWanderer: boolean },
): ResetClient {
  const { userId } = client
  const own = ['m.room.member', userId] as const
  const whole = { ...wish, state: [...wish.state, own] }
  const ask: Ask = { lists: { all: { ...whole, range: [0, 99], filter: {} } }, subscriptions: {} }
  let known = new KnownRoom()
  let pos: string | undefined
  let heard: string | undefined

  function takeMembership(raw: Json): void {
    if (form === 'merged') {
      heard = raw.membership ?? heard
      return
    }
    const ownEvent = (raw.required_state ?? []).findLast(
      ({ type, state_key: key }: Json) => type === 'm.room.member' && key === userId,
    )
    if (raw.invite_state !== undefined) heard = 'invite'
    else heard = ownEvent?.content.membership ?? heard
  }

  function take(raw: Json): string[] {
    takeMembership(raw)
    const news = newsOf(form, raw)
    if (news.isInitial) known = new KnownRoom()
    // A leave of long ago may come again, where it is what the user's membership went back to.
    const isAgain = ({ type, state_key: key, event_id: id }: Json) =>
      heard !== 'join' && type === 'm.room.member' && key === userId && known.knows(id)
    try {
      known.apply({ ...news, timeline: news.timeline.filter((event) => !isAgain(event)) })
      return []
    } catch (error) {
      return [(error as Error).message]
    }
  }

  return {
    name: `${userId} ${connId} (${form})`,
    async turn(isLost) {
      const call = callOf({ form, connId, pos, ask, extensions: {}, own: userId })
      const { status, body: answer } = await client.ask('POST', call.path, call.body)
      if (status !== 200) throw new Error(`${status} ${JSON.stringify(answer)}`)
      if (isLost) return
      pos = answer.pos
      const raw = answer.rooms[room.id]
      const problems = form === 'unstable' ? shapeProblems(answer) : []
      if (raw) problems.push(...take(raw))
      const truth = await room.truth()
      const membership = truth.membershipOf(userId)
      problems.push(...checkMembership(heard, membership))
      if (membership === 'join') {
        if (form === 'unstable') dropRemoved(known, truth)
        const wanted = together([whole])
        problems.push(...checkTimeline(known, truth, wish.limit), ...checkState(known, truth, wanted))
        problems.push(...checkSummary(known, truth))
        if (form === 'merged') problems.push(...checkName(known, truth))
      } else if (isWanderer && raw) {
        problems.push(...checkHidden([...(raw.timeline ?? []), ...(raw.required_state ?? [])], room, userId))
      }
      if (problems.length > 0)
        throw new Error(`${problems.join('\n')}\nanswer: ${JSON.stringify(raw && outlineOf(raw))}`)
    },
  }
}

/** By classic sync. Only with the state after the timeline can a client know state that was resolved. */
export function classicResetClient(home: Besieged, room: ResetRoom, user: string, isAfter: boolean): ResetClient {
  const userId = home.user(user)
  let known: KnownRoom | undefined
  let since: string | undefined
  let heard: string | undefined

  function take({ join, leave, invite }: Json): Json[] {
    const entered = join?.[room.id]
    const left = leave?.[room.id]
    if (entered) {
      const isInitial = heard !== 'join'
      heard = 'join'
      if (isInitial) known = new KnownRoom()
      const flags = { isInitial, isExpanded: false, isLimited: entered.timeline?.limited === true, stripped: undefined }
      const timeline: Json[] = entered.timeline?.events ?? []
      known!.apply({ ...flags, timeline, state: entered.state_after?.events ?? [], raw: {} })
    } else if (left) {
      heard = 'leave'
      return [...(left.timeline?.events ?? []), ...(left.state?.events ?? left.state_after?.events ?? [])]
    } else if (invite?.[room.id]) heard = 'invite'
    return []
  }

  return {
    name: `${userId} (classic${isAfter ? ', state after' : ''})`,
    async turn(isLost) {
      const filter = { room: { timeline: { limit: 5 } } }
      const answer = await home.sync(user, since, { filter, after: isAfter })
      if (isLost) return
      since = answer.next_batch
      const shown = take(answer.rooms ?? {})
      const truth = await room.truth()
      const membership = truth.membershipOf(userId)
      const problems = checkMembership(heard, membership)
      if (membership === 'join') {
        problems.push(...checkTimeline(known!, truth, 1))
        dropRemoved(known!, truth)
        if (isAfter) problems.push(...checkState(known!, truth, { limit: 1, isLazy: false, state: [['*', '*']] }))
      } else problems.push(...checkHidden(shown, room, userId))
      if (problems.length > 0) throw new Error(`${problems.join('\n')}\nanswer: ${JSON.stringify(answer.rooms)}`)
    },
  }
}
