import { ProtocolError } from '../../core/errors.ts'
import type { UserId } from '../../core/ids.ts'
import type { JsonObject } from '../../core/json.ts'
import { userIdsOf } from '../../store/accounts/users.ts'
import type { Database } from '../../store/db/db.ts'
import type { Clock, Random } from '../clock.ts'
import type { Requester } from './requester.ts'
import { isFlowDone, nextStages, type UiaFlow, type UiaProof } from './uia-flows.ts'
import { createUiaSessions, sessionEnded, stageUnwanted, type UiaOperation, type UiaSession } from './uia-sessions.ts'

export interface UiaAttempt extends UiaOperation {
  readonly requester: Requester | undefined
  /** The `auth` of the request's body. */
  readonly auth: JsonObject | undefined
}

/** Either the proof of a complete flow, or the 401 body that lists the stages left to do. */
export type UiaOutcome =
  /** `body`: the body of the session's first request, if this one sent only the session. */
  { readonly proof: UiaProof; readonly body?: JsonObject } | { readonly challenge: JsonObject }

/** One type of authentication. */
export interface UiaStage {
  /** The `params[stage]` of the challenge: what a client needs to begin the stage. */
  params?(): JsonObject
  /**
   * Checks what the client sent in `auth`. `session` is the id of the UIA session, `address` where the call comes from. Returns what it
   * established, never a secret.
   * @throws ProtocolError if it is wrong. The 401 contains the error, and the client may try again
   */
  prove(
    auth: JsonObject,
    call: { readonly requester: UiaCaller | undefined; readonly session: string; readonly address?: string },
  ): Promise<JsonObject>
  /**
   * What was established out of band since the last call of `prove`. It is called when a client polls with the session alone. Clients may
   * also poll by repeating their request, so attempts at such a stage are not counted.
   */
  poll?(call: { readonly requester: UiaCaller | undefined; readonly session: string }): Promise<JsonObject | undefined>
}

/** The stages that this server knows, by their type. */
export type UiaStages = Readonly<Record<string, UiaStage>>

/** The user to authenticate, if the account exists already. */
export type UiaCaller = Pick<Requester, 'userNid' | 'userId'>

export interface InteractiveAuth {
  /**
   * @throws ProtocolError `M_FORBIDDEN` if the session was begun for another request. Also rethrows 429, and errors of stages that are no
   *   4xx
   */
  advance(attempt: UiaAttempt): Promise<UiaOutcome>
  /**
   * Completes a stage that was finished out of band: on a fallback page, or by single sign-on. A second call changes nothing.
   * @throws ProtocolError `M_NOT_FOUND` if the session is unknown, `M_BAD_STATE` if this stage is not one of its next
   */
  complete(session: string, stage: string, proof: JsonObject): Promise<void>
  /**
   * Checks what a person entered on a stage's fallback page, and completes the stage if it is right.
   * @throws ProtocolError as `complete`, and what the stage throws
   */
  submit(session: string, stage: string, auth: JsonObject): Promise<void>
  /** What a fallback page needs: the stages of all flows, the completed ones, and the session's user. */
  look(session: string): Promise<UiaView | undefined>
}

export interface UiaView {
  readonly userNid: number | undefined
  readonly userId: UserId | undefined
  /** `POST C/delete_devices` */
  readonly operation: string
  readonly stages: readonly string[]
  readonly completed: readonly string[]
  /** The stages that may come next. */
  readonly next: readonly string[]
}

/** The `prove` of a stage that can only be completed out of band, such as on a fallback page. */
export function outOfBand(advice: string): UiaStage['prove'] {
  return async () => {
    throw new ProtocolError('M_UNAUTHORIZED', advice)
  }
}

/**
 * User-interactive authentication (client-server API, "User-Interactive Authentication API").
 *
 * A session belongs to one operation of one user and, once a stage is complete, to one body. It ends as soon as a flow is complete, so
 * that it authorises nothing twice. A call that completes a whole flow at once is never stored.
 */
export function createInteractiveAuth(deps: {
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
  readonly stages: UiaStages
}): InteractiveAuth {
  const { db, stages } = deps
  const sessions = createUiaSessions(deps)

  function challenge(flows: readonly UiaFlow[], session: UiaSession, error?: ProtocolError): UiaOutcome {
    const completed = Object.keys(session.completed)
    return {
      challenge: {
        ...error?.toJSON(),
        flows: flows.map((flow) => ({ stages: [...flow] })),
        params: paramsOf(stages, flows),
        session: session.id,
        completed,
      },
    }
  }

  /** Begins a new session and tells the client why. */
  async function restart(attempt: UiaAttempt): Promise<UiaOutcome> {
    const error = new ProtocolError('M_UNKNOWN', 'This session is not known or has ended. Start again.', {
      status: 401,
    })
    return challenge(attempt.flows, await sessions.ensure(sessions.fresh(), attempt), error)
  }

  async function tryStage(attempt: UiaAttempt, auth: JsonObject, session: UiaSession): Promise<UiaOutcome> {
    const { flows } = attempt
    let proven: UiaProof
    try {
      proven = await prove(stages, auth, attempt, session)
    } catch (error) {
      if (!(error instanceof ProtocolError) || error.status === 429 || error.status >= 500) throw error
      return challenge(flows, await sessions.ensure(session, attempt), error)
    }
    if (!session.isStored && isFlowDone(flows, proven)) return { proof: proven }
    const after = await sessions.record(session, proven, attempt)
    if (after === undefined) return restart(attempt)
    return isFlowDone(flows, after.completed) ? { proof: after.completed } : challenge(flows, after)
  }

  async function look(id: string): Promise<UiaView | undefined> {
    const session = await sessions.find(id)
    if (session === undefined) return undefined
    const { userNid, operation, flows, completed } = session
    return {
      userNid,
      userId: userNid === undefined ? undefined : (await userIdsOf(db, [userNid])).get(userNid),
      operation,
      stages: [...new Set(flows.flat())],
      completed: Object.keys(completed),
      next: nextStages(flows, completed),
    }
  }

  return {
    async advance(attempt) {
      const { auth, flows } = attempt
      if (auth === undefined) return challenge(flows, await sessions.ensure(sessions.fresh(), attempt))
      if (typeof auth.session !== 'string') return tryStage(attempt, auth, sessions.fresh())
      const session = await sessions.open(auth.session, attempt, isCounted(stages, auth))
      if (session === undefined) return restart(attempt)
      const { firstBody: body } = session
      if (body === undefined) return tryStage(attempt, auth, session)
      const outcome = await tryStage({ ...attempt, body }, auth, session)
      return 'proof' in outcome ? { ...outcome, body } : outcome
    },
    complete: sessions.complete,
    look,
    async submit(id, stage, auth) {
      const view = await look(id)
      if (view === undefined || !(await sessions.count(id))) throw sessionEnded()
      if (view.completed.includes(stage)) return
      if (!view.next.includes(stage) || stages[stage] === undefined) throw stageUnwanted(stage)
      const { userNid, userId } = view
      const requester = userNid === undefined || userId === undefined ? undefined : { userNid, userId }
      await sessions.complete(id, stage, await stages[stage].prove(auth, { requester, session: id }))
    },
  }
}

function paramsOf(stages: UiaStages, flows: readonly UiaFlow[]): JsonObject {
  const params: JsonObject = {}
  for (const stage of flows.flat()) {
    const shown = stages[stage]?.params?.()
    if (shown !== undefined) params[stage] = shown
  }
  return params
}

async function poll(stages: UiaStages, attempt: UiaAttempt, session: UiaSession): Promise<UiaProof> {
  for (const stage of nextStages(attempt.flows, session.completed)) {
    const proven = await stages[stage]?.poll?.({ requester: attempt.requester, session: session.id })
    if (proven !== undefined) return { [stage]: proven }
  }
  return {}
}

/** Whether an attempt counts against the session. Attempts at stages that clients poll by repetition do not. */
function isCounted(stages: UiaStages, { type }: JsonObject): boolean {
  const polls = typeof type === 'string' && Object.hasOwn(stages, type) && stages[type]?.poll !== undefined
  return type !== undefined && !polls
}

/** What the client proves with this call. It is checked before the session is locked, because hashing a password takes time. */
async function prove(stages: UiaStages, auth: JsonObject, attempt: UiaAttempt, session: UiaSession): Promise<UiaProof> {
  const { type } = auth
  if (type === undefined) return poll(stages, attempt, session)
  if (typeof type !== 'string' || !attempt.flows.flat().includes(type) || stages[type] === undefined) {
    throw new ProtocolError('M_UNRECOGNIZED', 'This type of authentication is not asked for.')
  }
  if (Object.hasOwn(session.completed, type)) return {}
  const next = nextStages(attempt.flows, session.completed)
  if (!next.includes(type)) {
    throw new ProtocolError(
      'M_UNAUTHORIZED',
      `Stages are completed in order. Now is the time for ${next.join(' or ')}.`,
    )
  }
  return { [type]: await stages[type].prove(auth, { ...attempt, session: session.id }) }
}

export type { UiaFlow, UiaProof }
